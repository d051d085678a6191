// Compiles the tests of the viewer's arithmetic for Node's own test runner: npm test.
import { readdirSync } from "node:fs";
import { defineConfig } from "vite";

const tests = readdirSync("test").filter((name) => name.endsWith(".test.ts"));

export default defineConfig({
  build: {
    target: "node20",
    outDir: "build/test",
    minify: false,
    lib: { entry: tests.map((name) => `test/${name}`), formats: ["es"] },
    rollupOptions: { external: /^node:/ },
  },
});
