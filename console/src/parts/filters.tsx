// A form of filters; what is in it is in the address.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import { go, route } from "../lib/navigation.js";
import { useObservable } from "../lib/observable.js";

export interface Filter {
  name: string;
  label: string;
  placeholder?: string;
  /** Values to choose from, with the words for each; without them it is a text. */
  options?: readonly (readonly [value: string, text: string])[];
  list?: readonly string[];
  wide?: boolean;
}

export function Filters({ filters, children }: { filters: readonly Filter[]; children?: ComponentChildren }) {
  const { path, query } = useObservable(route);
  const [draft, setDraft] = useState<Record<string, string>>(query);
  useEffect(() => setDraft(query), [query]);
  const set = (values: Record<string, string>) => go(path, { ...query, ...values });
  const submit = (event: Event) => {
    event.preventDefault();
    const trimmed: Record<string, string> = {};
    for (const { name } of filters) trimmed[name] = (draft[name] ?? "").trim();
    set(trimmed);
  };
  const used = filters.some(({ name }) => query[name]);
  return (
    <form class="filters" role="search" onSubmit={submit}>
      {filters.map((filter) => (
        <FilterField
          key={filter.name}
          filter={filter}
          value={draft[filter.name] ?? ""}
          onInput={(value) => setDraft({ ...draft, [filter.name]: value })}
          onChoose={(value) => set({ ...draft, [filter.name]: value })}
        />
      ))}
      <div class="actions">
        <button type="submit">Search</button>
        {used && (
          <button type="button" class="plain" onClick={() => go(path)}>
            Clear
          </button>
        )}
        {children}
      </div>
    </form>
  );
}

function FilterField({
  filter,
  value,
  onInput,
  onChoose,
}: {
  filter: Filter;
  value: string;
  onInput: (value: string) => void;
  onChoose: (value: string) => void;
}) {
  const id = useId();
  return (
    <p class={`field ${filter.wide ? "wide" : ""}`}>
      <label htmlFor={id}>{filter.label}</label>
      {filter.options ? (
        <select id={id} value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
          {filter.options.map(([option, text]) => (
            <option key={option} value={option} selected={option === value}>
              {text}
            </option>
          ))}
        </select>
      ) : (
        <>
          <input
            id={id}
            value={value}
            placeholder={filter.placeholder}
            list={filter.list ? id + "-list" : undefined}
            autoComplete="off"
            spellcheck={false}
            onInput={(event) => onInput(event.currentTarget.value)}
          />
          {filter.list && (
            <datalist id={id + "-list"}>
              {filter.list.map((one) => (
                <option key={one} value={one} />
              ))}
            </datalist>
          )}
        </>
      )}
    </p>
  );
}
