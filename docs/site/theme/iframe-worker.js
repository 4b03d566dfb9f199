// Search without a server. Browsers refuse a Worker to a page that was opened as a file; there this
// stands in for it: the worker's script runs in an empty frame of the page, and messages are events.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => {
        setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data })));
      };
      inside.importScripts = () => {};  // languages beside English, which the site has not
      this.ready = new Promise((resolve) => {
        const script = inside.document.createElement("script");
        script.src = new URL(url, location.href);
        script.onload = () => resolve(inside);
        inside.document.documentElement.append(script);
      });
    }
    postMessage(data) {
      this.ready.then((inside) => inside.dispatchEvent(
        new inside.MessageEvent("message", { data })));
    }
    terminate() {}
  };
}
