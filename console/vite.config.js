import { defineConfig } from "vite";

export default defineConfig({
  // The page may be served below a path of a proxy, so it names its files relative to itself.
  base: "./",
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    target: "es2022",
    // The content security policy of the console allows files of its own, and nothing inline.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    reportCompressedSize: true,
    // The program holds an index.html and a flat folder of assets.
    assetsDir: "assets",
  },
});
