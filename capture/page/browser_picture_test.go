package page_test

import (
	"bytes"
	"compress/gzip"
	"flag"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/capture/page"
	"github.com/goiwarp/iwarp/internal/testrig"
)

var update = flag.Bool("update", false, "take the picture of docs anew")

// pictured compares README's picture of a page with the page: a Read that was answered late, because the server's
// process was stopped.
func (w browser) pictured(t *testing.T) {
	b := w.open(t, pageOf(t, "slow-read"), "")
	_, err := chromedp.Call(b.ctx, emulation.SetDeviceMetricsOverride,
		emulation.SetDeviceMetricsOverrideParams{Width: 1200, Height: 810, DeviceScaleFactor: 1})
	testrig.Must(t, err)
	b.frames()
	drawn, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	testrig.Must(t, err)
	const name = "../../docs/decode.png"
	if *update {
		testrig.Must(t, os.WriteFile(name, drawn, 0o600))
	}
	stored, err := os.ReadFile(name)
	testrig.Must(t, err)
	if far := differenceOf(t, drawn, stored); far > 0.1 {
		t.Errorf("docs/decode.png is not what is drawn (%.2f): run this test with -update", far)
	}
}

// pageOf is the page of a capture in testdata.
func pageOf(t *testing.T, name string) *page.Page {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name+".pcap.gz"))
	testrig.Must(t, err)
	defer file.Close()
	packets, err := gzip.NewReader(file)
	testrig.Must(t, err)
	p := page.New(page.Config{Name: name + ".pcap"})
	totals, err := decode.Run(packets, decode.Config{}, p)
	testrig.Must(t, err)
	p.Totals(totals)
	return p
}

// differenceOf is how far two pictures are from each other, where 1 is black beside white: the worst of large squares, so
// that other fonts do not matter.
func differenceOf(t *testing.T, a, b []byte) (worst float64) {
	t.Helper()
	one, other := squares(t, a), squares(t, b)
	if len(one) != len(other) {
		return 1
	}
	for i := range one {
		worst = max(worst, math.Abs(one[i]-other[i]))
	}
	return worst
}

// squares are the brightness of the parts of a picture.
func squares(t *testing.T, picture []byte) (all []float64) {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(picture))
	testrig.Must(t, err)
	const side = 100
	for at := img.Bounds().Min; at.Y < img.Bounds().Max.Y; at.Y += side {
		for at.X = img.Bounds().Min.X; at.X < img.Bounds().Max.X; at.X += side {
			all = append(all, brightness(img, image.Rectangle{at, at.Add(image.Pt(side, side))}.Intersect(img.Bounds())))
		}
	}
	return all
}

func brightness(img image.Image, r image.Rectangle) (sum float64) {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			red, green, blue, _ := img.At(x, y).RGBA()
			sum += float64(red+green+blue) / (3 * 0xffff)
		}
	}
	return sum / float64(r.Dx()*r.Dy())
}
