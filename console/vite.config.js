import { defineConfig } from "vite";

export default defineConfig({
  // The page may be served below a path of a proxy, so it names its files relative to itself.
  base: "./",
  // `npm run dev` beside `outbox console`: the console compares the origin with the host that was asked.
  server: { proxy: { "/api": { target: "http://127.0.0.1:8484", changeOrigin: true, headers: { origin: "http://127.0.0.1:8484" } } } },
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
