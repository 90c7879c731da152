/// <reference types="vitest/config" />
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

// `npm run dev` forwards requests for data to a running server: clew up --no-browser
const SERVER = "http://127.0.0.1:8100";

/** Writes a compressed copy beside each file, so that the server need not compress. */
function compress(directory: string): Plugin {
  return {
    name: "compress",
    closeBundle() {
      for (const name of readdirSync(directory)) {
        if (!/\.(js|css|svg)$/.test(name)) continue;
        const data = readFileSync(`${directory}/${name}`);
        writeFileSync(`${directory}/${name}.gz`, gzipSync(data, { level: 9 }));
      }
    },
  };
}

const OUTPUT = new URL("../src/clew/_web", import.meta.url).pathname;

export default defineConfig({
  plugins: [react(), tailwindcss(), compress(`${OUTPUT}/assets`)],
  resolve: { alias: { "@": new URL("./src", import.meta.url).pathname } },
  build: {
    outDir: OUTPUT,
    emptyOutDir: true,
    target: "es2022",
    // Inlined fonts and images would need `data:` in the content security policy.
    assetsInlineLimit: 0,
  },
  server: {
    proxy: Object.fromEntries(
      ["/api", "/apis", "/jupyter/api", "/tensorboards/api", "/volumes/api", "/logout"].map(
        (path) => [path, { target: SERVER, changeOrigin: true }],
      ),
    ),
  },
  test: { environment: "jsdom", include: ["src/**/*.test.{ts,tsx}"], restoreMocks: true },
});
