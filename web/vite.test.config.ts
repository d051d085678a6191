// Compiles the tests of the viewer's arithmetic for Node: tools/check_web.sh runs them.
import { readdirSync } from "node:fs";
import { defineConfig } from "vite";

const tests = readdirSync("test").filter((name) => name.endsWith(".ts"));

export default defineConfig({
  build: {
    target: "node20",
    outDir: "build/test",
    minify: false,
    lib: { entry: tests.map((name) => `test/${name}`), formats: ["es"] },
    rollupOptions: { external: /^node:/ },
  },
});
