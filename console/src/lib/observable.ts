import { useEffect, useState } from "preact/hooks";

/** A value that changes, and those that want to know. */
export class Observable<T> {
  private readonly listeners = new Set<(value: T) => void>();

  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }

  set(value: T): void {
    if (Object.is(value, this.current)) return;
    this.current = value;
    this.listeners.forEach((listener) => listener(value));
  }

  subscribe(listener: (value: T) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** Renders the component again when the value, or what `select` takes from it, changes. */
export function useObservable<T, R = T>(source: Observable<T>, select?: (value: T) => R): R {
  const pick = select ?? ((value: T) => value as unknown as R);
  const [shown, show] = useState<R>(() => pick(source.value));
  useEffect(() => {
    const update = (value: T) => show(() => pick(value));
    update(source.value);
    return source.subscribe(update);
  }, [source]);
  return shown;
}
