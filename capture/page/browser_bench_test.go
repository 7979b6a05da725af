package page_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/goiwarp/iwarp/capture/page"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// BenchmarkLong opens a page of 140,000 FPDUs, and zooms into its time. It reports how long the page is, how long it
// takes until everything is shown, and the same for a step of the zoom, with the wait for the next frame.
func BenchmarkLong(b *testing.B) {
	p := page.New(page.Config{Name: "long"})
	newScript(p, 0).long(140_000)
	path := filepath.Join(b.TempDir(), "page.html")
	text := written(b, p)
	testrig.Must(b, os.WriteFile(path, text, 0o600))
	at := (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
	w := newBrowser(b)
	var open, zoom float64
	for b.Loop() {
		ctx, stop := chromedp.NewContext(w.ctx)
		testrig.Must(b, chromedp.Do(ctx, chromedp.Navigate(at)))
		open += milliseconds(ctx, b, shownAfter)
		zoom += milliseconds(ctx, b, fmt.Sprintf(zoomed, "canvas.time"))
		stop()
	}
	b.ReportMetric(float64(len(text))/(1<<20), "MiB")
	b.ReportMetric(open/float64(b.N), "ms/open")
	b.ReportMetric(zoom/float64(b.N), "ms/zoom")
	b.ReportMetric(0, "ns/op")
}

// shownAfter is the time from the navigation to the first drawing of all strips.
const shownAfter = `new Promise((done) => {
	const look = () => [...document.querySelectorAll("article:not([hidden]) canvas")].every((c) => c.dataset.drawn > 0) &&
		document.documentElement.dataset.ready ? done(performance.now()) : requestAnimationFrame(look);
	look();
})`

// zoomed is the mean time of a step, of ten into a strip and out of it.
const zoomed = `(async () => {
	const c = document.querySelector(%q), began = performance.now();
	for (let i = 0; i < 20; i++) {
		const drawn = c.dataset.drawn;
		c.dispatchEvent(new WheelEvent("wheel", { deltaY: i < 10 ? -200 : 200, cancelable: true }));
		while (c.dataset.drawn === drawn) await new Promise(requestAnimationFrame);
	}
	return (performance.now() - began) / 20;
})()`

// milliseconds returns what a script says.
func milliseconds(ctx context.Context, b *testing.B, script string) float64 {
	b.Helper()
	ms, err := chromedp.Run(ctx, chromedp.Evaluate[float64](script, chromedp.EvalAwaitPromise))
	testrig.Must(b, err)
	return ms
}
