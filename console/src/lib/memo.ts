import { Component, type ComponentType, createElement } from "preact";

/** A component that is rendered again only if `same` says that what it shows has changed. */
export function memo<P extends object>(inner: ComponentType<P>, same: (before: P, after: P) => boolean): ComponentType<P> {
  return class extends Component<P> {
    override shouldComponentUpdate(after: P): boolean {
      return !same(this.props as P, after);
    }
    render() {
      return createElement(inner, this.props as P);
    }
  } as unknown as ComponentType<P>;
}
