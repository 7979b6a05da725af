package housecheck

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

const pictureFile = "docs/iwarp.svg"

// TestPicture draws the picture of README.md: go test ./internal/housecheck -run TestPicture -update writes it.
func TestPicture(t *testing.T) {
	drawn := drawPicture()
	if *update {
		must(t, os.WriteFile(pictureFile, drawn, 0o600))
	}
	if stored, err := os.ReadFile(pictureFile); err != nil || !bytes.Equal(stored, drawn) {
		t.Errorf("%s is not what is drawn (%v)", pictureFile, err)
	}
}

// A picture is an SVG in the making.
type picture struct{ strings.Builder }

const pictureStyle = `<style>text{font:14px system-ui,sans-serif;fill:#1b1f24;text-anchor:middle}.name{font-weight:600}.small{font-size:12px;fill:#57606a}` +
	`.box{fill:#f6f8fa;stroke:#8b949e}.memory{fill:#ddf4ff;stroke:#0969da}.layer{fill:#fff;stroke:#c4cad1}` +
	`line{stroke:#0969da;stroke-width:2}.head{fill:#0969da}.wire{stroke:#8b949e;stroke-width:2;stroke-dasharray:5 4}</style>`

func (p *picture) add(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *picture) box(class string, x, y, w, h int) {
	p.add(`<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="6"/>`, class, x, y, w, h)
}

func (p *picture) text(class string, x, y int, text string) {
	p.add(`<text class="%s" x="%d" y="%d">%s</text>`, class, x, y, text)
}

// arrow draws one between the two programs, with what it is above it.
func (p *picture) arrow(y int, toRight bool, what string) {
	const left, right = 270, 630
	p.add(`<line x1="%d" y1="%d" x2="%d" y2="%[2]d"/>`, left, y, right)
	tip, back := right, -11
	if !toRight {
		tip, back = left, 11
	}
	p.add(`<polygon class="head" points="%d,%d %d,%d %[3]d,%[5]d"/>`, tip, y, tip+back, y-6, y+6)
	p.text("", (left+right)/2, y-8, what)
}

// drawEnd draws a program with its memory, and the layers below it.
func (p *picture) drawEnd(x int, name, who string, parts [3]string) {
	p.box("box", x, 40, 230, 320)
	p.text("name", x+115, 64, name)
	p.text("small", x+115, 82, who)
	for i, part := range parts {
		p.box("memory", x+25, 96+50*i, 180, 34)
		p.text("", x+115, 118+50*i, part)
	}
	for i, layer := range []string{"verbs: QP, CQ, MR, SRQ", "RDMAP, DDP", "MPA on TCP, or SCTP"} {
		p.box("layer", x+25, 252+34*i, 180, 28)
		p.text("small", x+115, 270+34*i, layer)
	}
}

// drawPicture shows what RDMA is: three ways in which bytes pass between two programs' memory.
func drawPicture() []byte {
	var p picture
	p.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 380" width="900" height="380" role="img" aria-label="Two programs: a Send lands in a receive that is posted, a Write in memory that is offered, and a Read fetches from it">`)
	p.add(pictureStyle)
	p.add(`<rect width="100%%" height="100%%" fill="#fff"/>`)
	p.drawEnd(40, "your program", "Go, with package iwarp", [3]string{"a message", "bytes", "a place for bytes"})
	p.drawEnd(630, "its peer", "iwarp, Linux's siw, ...",
		[3]string{"a receive, posted", "memory, offered", "memory, offered"})
	p.arrow(113, true, "Send: a message, which it receives")
	p.arrow(163, true, "RDMA Write: its program does nothing")
	p.arrow(213, false, "RDMA Read: its program does nothing")
	p.add(`<line class="wire" x1="245" y1="334" x2="655" y2="334"/>`)
	p.text("small", 450, 326, "any network; no RDMA hardware, no root")
	p.add(`</svg>`)
	return []byte(p.String())
}
