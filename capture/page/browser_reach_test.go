package page_test

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/capture/page"
)

// narrow shows a page on the screen of a telephone: what is wider than that scrolls within its part.
func (w browser) narrow(t *testing.T) {
	p := page.New(page.Config{Name: "narrow"})
	newScript(p, 0).long(2000)
	reset := newScript(p, 1)
	reset.finding(decode.Warning, back, 0, "NVMe reports capacity exceeded (0x081) of Write of 2048 blocks at 2048, namespace 1")
	reset.conn.Halves[back].End = capture.End{Reason: capture.EndRST}
	reset.finish()
	b := w.open(t, p, "")
	screen := emulation.SetDeviceMetricsOverrideParams{Width: 390, Height: 844, DeviceScaleFactor: 2, Mobile: true}
	if _, err := chromedp.Call(b.ctx, emulation.SetDeviceMetricsOverride, screen); err != nil {
		t.Fatal(err)
	}
	b.frames()
	b.want("document.documentElement.scrollWidth", "390")
	b.want(`[...document.querySelectorAll("#connections .badge")].map((e) => e.getBoundingClientRect().right <= 390)`, "true,true")
	b.eval(axisTexts)
	const canvas, left, right = "canvas[data-dir='0']", "\u0302", "\u0303" // as chromedp names the arrows
	b.press(canvas, "++++")
	for range 10 {
		b.press(canvas, right)
		b.press(canvas, "+"+left)
	}
	b.want("texts.length > 20", "true")
	b.want("texts.filter((t) => t.right > t.width).length", "0")
}

// axisTexts notes where the texts of the axis of each map end.
const axisTexts = `globalThis.texts = [], ((draw) => {
	CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
		if (y < 18 && x > 92) texts.push({ right: x + this.measureText(text).width, width: this.canvas.clientWidth });
		draw.call(this, text, x, y);
	};
})(CanvasRenderingContext2D.prototype.fillText)`

// readable asks what those need who have no mouse, or do not see the page.
func (w browser) readable(t *testing.T) {
	b := w.open(t, small(), "")
	for what, faults := range map[string]string{
		"parts that scroll and cannot be reached by keys": `[...document.querySelectorAll("body *")].filter((e) =>
			["auto", "scroll"].includes(getComputedStyle(e).overflowX) && e.tabIndex < 0 && !e.querySelector("a, button, select, input, [tabindex='0']"))`,
		"buttons whose name lacks the words on them": `[...document.querySelectorAll("button[aria-label]")].filter((e) =>
			/[a-z]/i.test(e.textContent) && !e.getAttribute("aria-label").includes(e.textContent))`,
		"headers without a text": `[...document.querySelectorAll("th")].filter((e) => !e.textContent.trim())`,
		"fields without a label": `[...document.querySelectorAll("select, input")].filter((e) => !e.closest("label") && !e.ariaLabel)`,
	} {
		if got := b.eval(faults + ".map((e) => e.outerHTML.slice(0, 80)).join()"); got != "" {
			t.Errorf("%s: %s", what, got)
		}
	}
}
