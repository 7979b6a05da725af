package page_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/capture/page"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// axe returns the accessibility checker, axe-core, which .ci/run fetches. It is no part of the repository.
func axe(t *testing.T) string {
	t.Helper()
	path := os.Getenv("IWARP_AXE")
	if path == "" {
		testrig.Lacks(t, "axe-core is not here: name its axe.min.js in IWARP_AXE, as .ci/run does")
	}
	script, err := os.ReadFile(path)
	testrig.Must(t, err)
	return string(script)
}

// A violation is what axe-core finds.
type violation struct {
	ID, Impact, Help string
	Nodes            []string
}

// judged runs axe-core in the page, for the rules of WCAG 2.2 on levels A and AA and those of good practice.
const judged = `axe.run(document, { resultTypes: ["violations"] }).then((r) => JSON.stringify(r.violations.map((v) =>
	({ id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.slice(0, 5).map((n) => n.html.slice(0, 200) + " " + n.failureSummary) }))))`

// accessible has axe-core look at pages, in light and dark colors and on a narrow screen. Nothing that it calls serious or
// critical may be there.
func (w browser) accessible(t *testing.T) {
	script := axe(t)
	explained := page.New(page.Config{Name: "explained"})
	timed(explained)
	newScript(explained, 7).finding(decode.Warning, forth, 0, "one more")
	for name, p := range map[string]*page.Page{"small": small(), "rping": capturePage(t, pinged).Page, "explained": explained, "many": crowd(150, 3)} {
		t.Run(name, func(t *testing.T) {
			b := w.open(t, p, "")
			b.do(chromedp.Evaluate[chromedp.Void](script + ";0"))
			b.judge("light")
			b.click("canvas[data-dir='0']")
			b.judge("chosen")
			b.judgeOthers()
		})
	}
}

// judgeOthers has axe-core look at the page in dark colors and on a narrow screen.
func (b *tab) judgeOthers() {
	b.t.Helper()
	b.emulate("dark")
	b.judge("dark")
	b.emulate("light")
	_, err := chromedp.Call(b.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 360, Height: 740, DeviceScaleFactor: 2, Mobile: true})
	testrig.Must(b.t, err)
	b.frames()
	b.judge("narrow")
}

// emulate asks for colors.
func (b *tab) emulate(scheme string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	testrig.Must(b.t, err)
	b.frames()
}

// judge has axe-core judge what is shown.
func (b *tab) judge(when string) {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](judged, chromedp.EvalAwaitPromise))
	testrig.Must(b.t, err)
	var all []violation
	testrig.Must(b.t, json.Unmarshal([]byte(text), &all))
	for _, v := range all {
		say := b.t.Logf
		if v.Impact == "serious" || v.Impact == "critical" {
			say = b.t.Errorf
		}
		say("%s: %s (%s): %s\n%s", when, v.ID, v.Impact, v.Help, fmt.Sprint(strings.Join(v.Nodes, "\n")))
	}
}
