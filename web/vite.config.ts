import { defineConfig } from "vite";

// The development server sends documents, events and questions to a running `dendrer serve`:
//   DENDRER_URL='http://127.0.0.1:7171/?token=...' npm run dev
const url = process.env.DENDRER_URL ? new URL(process.env.DENDRER_URL) : null;
const proxied = url && {
  target: url.origin,
  changeOrigin: true,
  headers: { authorization: `Bearer ${url.searchParams.get("token") ?? ""}`, origin: url.origin },
};

export default defineConfig({
  build: {
    target: "es2022",
    // A data: address would be refused by the policy of the server.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
  server: proxied
    ? { proxy: { "^/[^?]*\\.(json|jsonl|csv|svg)(\\?|$)": proxied, "^/(run/[^/]+/)?events(\\?|$)": proxied, "^/ask/": proxied } }
    : {},
});
