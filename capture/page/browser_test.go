package page_test

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/goiwarp/iwarp/capture/page"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// chromium returns the browser to test with. Without one the test is skipped, but not
// where CI=true.
func chromium(t testing.TB) string {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome", "headless_shell"}
	if path := os.Getenv("IWARP_CHROMIUM"); path != "" {
		names = []string{path}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	testrig.Lacks(t, fmt.Sprintf("none of %s is here: install Chromium, or name it in IWARP_CHROMIUM",
		strings.Join(names, ", ")))
	return ""
}

// A browser is a running one. Its methods that take a test are the subtests of TestBrowser.
type browser struct{ ctx context.Context }

// TestBrowser looks at pages as a reader sees them. All its parts do so in one browser,
// because starting one takes longer than most of them.
func TestBrowser(t *testing.T) {
	w := newBrowser(t)
	for name, part := range map[string]func(*testing.T){
		"parts": w.parts, "odd": w.odd, "long": w.long, "address": w.address,
		"bounded": w.bounded, "keys": w.keys, "dark": w.dark, "captures": w.captures,
		"narrow": w.narrow, "readable": w.readable, "time": w.time, "find": w.find, "worst": w.worst,
		"said": w.said, "around": w.around, "unanswered": w.unanswered, "faulty": w.faulty, "unscrolled": w.unscrolled, "covered": w.covered, "accessible": w.accessible, "reports": w.reports, "many": w.many, "printed": w.printed, "pictured": w.pictured,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for frames of its own tab
			part(t)
		})
	}
}

// newBrowser starts a browser for the test.
func newBrowser(t testing.TB) browser {
	t.Helper()
	// The sandbox does not work for root, nor in many containers; the pages are ours.
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)), chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.WindowSize(1400, 1200))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(stop)
	ctx, stop := chromedp.NewContext(alloc)
	t.Cleanup(stop)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("the browser does not start: %v", err)
	}
	return browser{ctx}
}

// A tab shows a page at a time, for one test at a time, and has heard what the page said.
type tab struct {
	t   *testing.T
	ctx context.Context
	url string

	mu       sync.Mutex
	console  []string
	requests []string
}

// shown is what a tab shows.
type shown interface{ Write(w io.Writer) error }

// open shows a page in a new tab.
func (w browser) open(t *testing.T, p shown, address string) *tab {
	t.Helper()
	ctx, stop := chromedp.NewContext(w.ctx)
	t.Cleanup(stop)
	b := &tab{ctx: ctx}
	testrig.Must(t, chromedp.Listen(ctx, b.heard))
	b.show(t, p, address)
	return b
}

// show has the tab show another page. At the test's end it must have said nothing on the
// console, and asked for nothing but itself.
func (b *tab) show(t *testing.T, p shown, address string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.html")
	testrig.Must(t, os.WriteFile(path, written(t, p), 0o600))
	b.mu.Lock()
	b.console, b.requests = nil, nil
	b.mu.Unlock()
	b.t, b.url = t, (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
	b.do(chromedp.Navigate(b.url + address))
	t.Cleanup(func() { b.quiet(t) })
	if _, scripted := p.(*page.Page); scripted {
		b.want(`document.documentElement.dataset.ready`, "true")
	}
	b.frames()
}

func (b *tab) heard(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		b.console = append(b.console, fmt.Sprintf("%s %v", e.Type, e.Args))
	case *runtime.EventExceptionThrown:
		b.console = append(b.console, fmt.Sprintf("%s %v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *log.EventEntryAdded:
		b.console = append(b.console, e.Entry.Text)
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

// quiet checks what was heard.
func (b *tab) quiet(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, line := range b.console {
		t.Errorf("on the console: %s", line)
	}
	if want := []string{b.url}; !slices.Equal(b.requests, want) {
		t.Errorf("requests: %q, want %q", b.requests, want)
	}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	testrig.Must(b.t, chromedp.Do(b.ctx, steps...))
}

// frames waits until what was done is drawn.
func (b *tab) frames() {
	b.t.Helper()
	const twice = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(1)))))`
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[int](twice, chromedp.EvalAwaitPromise)); err != nil {
		b.t.Fatal(err)
	}
}

// eval returns what an expression comes to, as text.
func (b *tab) eval(expression string) string {
	b.t.Helper()
	got, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return got
}

func (b *tab) want(expression, want string) {
	b.t.Helper()
	if got := b.eval(expression); got != want {
		b.t.Errorf("%s is %q, want %q", expression, got, want)
	}
}

// click clicks on an element, wherever it is on the page.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector)))
	b.frames()
}

// press presses keys where the focus is.
func (b *tab) press(selector, keys string) {
	b.t.Helper()
	b.do(chromedp.Focus(chromedp.CSS(selector)), chromedp.KeyEvent(keys))
	b.frames()
}

// selected is the row of the FPDU that is chosen, by all that shows it.
const selected = `[document.querySelector('article:not([hidden]) [role=row][aria-selected=true]')?.dataset.fpdu,
	document.querySelector('article:not([hidden]) .detail').dataset.fpdu]`

func (w browser) parts(t *testing.T) {
	b := w.open(t, small(), "#c0")
	for selector, want := range map[string]string{
		"#connections tr[data-connection]":                 "2",
		"article:not([hidden])":                            "1",
		"#c0 canvas[role=application]":                     "3",
		"#c0 [role=grid] [role=row]":                       "2",
		"#c0 .legend li":                                   "13",
		"#c0 .ladder svg .step.startup":                    "2",
		"#c0 .ladder svg .step.fpdu":                       "2",
		"#c0 .summary table":                               "1",
		"#c0 .detail, #c0 .filters, #c0 .findings":         "3",
		"button:not([aria-label]), canvas:not([tabindex])": "0",
	} {
		b.want(fmt.Sprintf("document.querySelectorAll(%q).length", selector), want)
	}
	b.click("#connections a[href='#c5']")
	b.want(`document.querySelector("article:not([hidden])").id`, "c5")
	b.want(`document.querySelector("#connections tr[aria-current=true]").dataset.connection`, "5")

	b.click("#c5-f1 a") // in a frame of the startup
	b.want(`document.querySelector("#c5 .step.current").dataset.dir`, "1")
	b.want(`document.querySelector("#c5 .step.current text").textContent.startsWith("mpa: start-rep")`, "true")
	b.want(selected, ",")
	b.click("#c5-f0 a") // in an FPDU
	b.want(selected, "0,0")
	b.want(`document.querySelector("#c5-f0").getAttribute("aria-current")`, "true")
	b.want(`document.querySelector("#c5-f1").getAttribute("aria-current")`, "null")

	b.click("#c5 [role=row][data-fpdu='1']")
	b.want(selected, "1,1")
	b.want("location.hash", "#c5-p1")
	b.want(`document.querySelector("#c5 .detail").textContent.includes(
		"RDMA Read Request qn 0 msn 1 mo 0 size 4096 source 0x00000009 0x8000000000000005 sink 0x00000007 0x10000000000 last")`, "true")
}

// long shows 20,000 FPDUs, with IWARP_ALL 100,000, and goes to the places of findings.
func (w browser) long(t *testing.T) {
	n := 20_000
	if testrig.Everything() {
		n = 100_000
	}
	p := page.New(page.Config{Name: "long"})
	rows := newScript(p, 0).long(n)
	b := w.open(t, p, "")
	b.want(rowCount, fmt.Sprint(n))
	b.want(`document.querySelectorAll("[role=row]").length < 100`, "true")
	b.want(painted, "true,true")
	for i, row := range rows {
		b.click(fmt.Sprintf("#c0-f%d a", i))
		b.want(selected, fmt.Sprintf("%d,%d", row, row))
		b.want("location.hash", fmt.Sprintf("#c0-f%d", i))
		b.want(fmt.Sprintf(`document.querySelector("#c0-f%d").getAttribute("aria-current")`, i), "true")
		b.want(fmt.Sprintf(inWindow, i), "true")
		b.want(`document.querySelector(".detail").textContent.includes("WRONG")`, "true")
		b.want(seen, "true")
	}

	choose := `((s, v) => { s.value = v; s.dispatchEvent(new Event("change")); })(document.querySelectorAll(".filters select")[%d], "%d")`
	b.eval(fmt.Sprintf(choose, 1, 1))
	b.want(rowCount, fmt.Sprint(n/10))
	b.eval(fmt.Sprintf(choose, 0, 0))
	b.want(rowCount, "0")
	b.click("#c0-f0 a") // lifts the filter
	b.want(rowCount, fmt.Sprint(n))
	b.want(selected, fmt.Sprintf("%d,%d", rows[0], rows[0]))
	b.click(".filters input[type=checkbox]")
	b.want(rowCount, fmt.Sprint(len(rows)))
}

// rowCount is how many FPDUs the filters let through.
const rowCount = `document.querySelector("[role=grid]").getAttribute("aria-rowcount")`

// address opens pages at a place that their address names.
func (w browser) address(t *testing.T) {
	p := page.New(page.Config{Name: "address"})
	rows := newScript(p, 0).long(10_000)
	b := w.open(t, p, "#c0-f2")
	b.want(selected, fmt.Sprintf("%d,%d", rows[2], rows[2]))
	b.want(fmt.Sprintf(inWindow, 2), "true")
	b.show(t, p, "#c0-p7777")
	b.want(selected, "7777,7777")
	b.want(inView, "true")
	b.want(seen, "true")
}

// bounded goes to findings of a page that does not have all FPDUs.
func (w browser) bounded(t *testing.T) {
	p := page.New(page.Config{Name: "bounded", FPDUs: 3000})
	rows := newScript(p, 0).long(10_000)
	b := w.open(t, p, "")
	b.click("#c0-f0 a")
	b.want(selected, fmt.Sprintf("%d,%d", rows[0], rows[0]))
	b.click("#c0-f3 a")
	b.want(selected, ",")
	b.want(`document.querySelector(".detail").textContent.includes("after the last one")`, "true")
	b.want(fmt.Sprintf(inWindow, 3), "true")
}

// inWindow tells whether a finding's place is in the window of its map.
const inWindow = `((d) => {
	const c = document.querySelector("canvas[data-dir='" + d.dir + "']");
	return +c.dataset.from <= +d.offset && +d.offset < +c.dataset.to && c.dataset.to - c.dataset.from < 100000;
})(document.querySelector("#c0-f%d").dataset)`

// seen tells whether the chosen row is in the visible part of the table.
const seen = `((row, rows) => row.top >= rows.top - 1 && row.bottom <= rows.bottom + 1)(
	document.querySelector("[role=row][aria-selected=true]").getBoundingClientRect(),
	document.querySelector("[role=grid]").getBoundingClientRect())`

// painted tells for each map whether its row of FPDUs is painted from end to end, but for
// lines between them.
const painted = `[...document.querySelectorAll("article:not([hidden]) canvas[data-dir]")].map((c) => {
	const ratio = c.width / c.clientWidth, from = Math.ceil(100 * ratio), width = c.width - from;
	const line = c.getContext("2d").getImageData(from, Math.round(84 * ratio), width, 1).data;
	let filled = 0;
	for (let i = 3; i < line.length; i += 4) if (line[i] === 255) filled++;
	return filled / width > 0.9;
})`

// keys goes through map and table by keys and with the mouse.
func (w browser) keys(t *testing.T) {
	p := page.New(page.Config{Name: "keys"})
	newScript(p, 0).long(2000)
	b := w.open(t, p, "")
	const canvas, grid = "canvas[data-dir='0']", "[role=grid]"
	window := fmt.Sprintf(`((d) => d.to - d.from)(document.querySelector(%q).dataset)`, canvas)
	all := b.eval(window)
	b.press(canvas, "+")
	if got := b.eval(window); got >= all && len(got) >= len(all) {
		t.Errorf("zoomed in from %s bytes to %s", all, got)
	}
	b.press(canvas, "0")
	b.want(window, all)

	b.press(canvas, ".")
	b.want(selected, "0,0")
	b.press(canvas, "....")
	b.want(selected, "4,4")
	b.press(canvas, ",")
	b.want(selected, "3,3")
	b.press(grid, "\u0301") // ArrowDown
	b.want(selected, "4,4")

	b.click("button[aria-label='All: show the whole stream']")
	b.click(canvas) // in its middle
	row := b.eval(`document.querySelector("[role=row][aria-selected=true]").dataset.fpdu`)
	if row == "4" {
		t.Error("a click on the map chose nothing")
	}
	b.want(seen, "true")
}

// dark asks for dark colors.
func (w browser) dark(t *testing.T) {
	b := w.open(t, small(), "")
	const ground = `getComputedStyle(document.body).backgroundColor`
	b.want(ground, "rgb(255, 255, 255)")
	dark := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme",
		Value: "dark"}}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, dark); err != nil {
		t.Fatal(err)
	}
	b.frames()
	b.want(ground, "rgb(20, 23, 26)")
	b.want(painted, "true,true")
}

// printed asks for what a printer gets: no controls, and lists that are not cut.
func (w browser) printed(t *testing.T) {
	b := w.open(t, small(), "#c5-f0")
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	testrig.Must(t, err)
	b.frames()
	b.want(`[...document.querySelectorAll("input, select, button, .rows")].every((e) => e.offsetParent === null)`, "true")
	b.want(`getComputedStyle(document.querySelector("#c5 .findings ol")).maxHeight`, "none")
	b.want(`document.querySelector("#c5-f0").offsetHeight > 0`, "true")
}
