// Builds the viewer into one file, dist/report.html: script and style stand inside it, so that the page loads nothing.
import { defineConfig, type Plugin } from "vite";

function inlineAll(): Plugin {
  return {
    name: "inline-all",
    enforce: "post",
    generateBundle(_options, bundle) {
      const page = bundle["index.html"];
      if (page?.type !== "asset") throw new Error("no page");
      let html = String(page.source);
      for (const [name, part] of Object.entries(bundle)) {
        if (part === page) continue;
        const isScript = part.type === "chunk";
        const text = isScript ? part.code.trim().replaceAll("</script", "<\\/script") : String(part.source).trim();
        const file = name.replaceAll("/", "\\/").replaceAll(".", "\\.");
        const tag = isScript
          ? new RegExp(`\\s*<script[^>]*src="[^"]*${file}"[^>]*></script>`)
          : new RegExp(`<link[^>]*rel="stylesheet"[^>]*href="[^"]*${file}"[^>]*>`);
        if (!tag.test(html)) throw new Error(`${name} is not in the page`);
        html = html.replace(tag, "");
        // The script comes last, behind the recordings that it reads.
        html = isScript
          ? html.replace("</body>", () => `<script type="module">\n${text}\n</script>\n</body>`)
          : html.replace("</head>", () => `<style>\n${text}\n</style>\n</head>`);
        delete bundle[name];
      }
      page.source = html.replace(/\n\s+/g, "\n");
      page.fileName = "report.html";
    },
  };
}

export default defineConfig({
  plugins: [inlineAll()],
  build: { target: "es2022", modulePreload: false, cssCodeSplit: false, assetsInlineLimit: 0 },
});
