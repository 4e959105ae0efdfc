import { useEffect, useRef, useState } from "preact/hooks";

/**
 * The groups of a long list, each changed in a frame of its own: the live document comes each second,
 * and 200 cards that are rendered at once take longer than a frame.
 */
export function useGradually<T>(items: readonly T[], size: number): (readonly T[])[] {
  const divide = (list: readonly T[]) => {
    const groups: (readonly T[])[] = [];
    for (let i = 0; i < list.length; i += size) groups.push(list.slice(i, i + size));
    return groups;
  };
  const [groups, setGroups] = useState<(readonly T[])[]>(() => divide(items.slice(0, size)));
  const frame = useRef(0);
  useEffect(() => {
    const wanted = divide(items);
    let at = 0;
    const step = () => {
      const index = at++;
      setGroups((before) => {
        const next = before.slice(0, wanted.length);
        const group = wanted[index];
        if (group) next[index] = group;
        return next;
      });
      if (at < wanted.length) frame.current = requestAnimationFrame(step);
    };
    frame.current = requestAnimationFrame(step);
    return () => cancelAnimationFrame(frame.current);
  }, [items]);
  return groups;
}
