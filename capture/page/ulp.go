package page

import (
	"slices"
	"strconv"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
)

// maxSaid is how many lines of ULPs a page has.
const maxSaid = 20_000

// places are where the FPDUs of a connection are, by direction, in the order of the stream.
type places [2]struct {
	offsets []uint64
	rows    []int32
}

func (p *places) add(d capture.Dir, offset uint64, row int) {
	own := &p[d]
	own.offsets, own.rows = append(own.offsets, offset), append(own.rows, int32(row))
}

// row returns the row of the FPDU at an offset.
func (p *places) row(d capture.Dir, offset uint64) (row int, ok bool) {
	i, ok := slices.BinarySearch(p[d].offsets, offset)
	if !ok {
		return 0, false
	}
	return int(p[d].rows[i]), true
}

// ULP is part of [decode.Consumer]. What was said of an FPDU is shown with it.
func (p *Page) ULP(c *decode.Connection, u *decode.ULP) {
	own := shown(c)
	if own == nil {
		return
	}
	own.ladder.say(u.Dir, u.Offset, u.String())
	row, ok := own.places.row(u.Dir, u.Offset)
	if !ok || !takeOne(&p.left.said) {
		own.unsaid++
		return
	}
	own.said++
	own.fpdus.text(row, u.String())
	if u.Latency > 0 {
		own.answers.add(row, u.Latency)
	}
}

// answers are the FPDUs with an answer of the ULP to something that is known.
type answers struct {
	Count int    `json:"count"`
	Row   column `json:"row"`
	Last  column `json:"last"` // from what is answered, in ns
}

func (l *answers) add(row int, latency time.Duration) {
	l.Row.add(0, uint64(row))
	l.Last.plain(int64(latency))
	l.Count++
}

// text adds a text on the FPDU in a row.
func (l *fpdus) text(row int, text string) {
	if l.Texts == nil {
		l.Texts = map[string]string{}
	}
	key := strconv.Itoa(row)
	if before := l.Texts[key]; before != "" {
		text = before + "; " + text
	}
	l.Texts[key] = text
}

// say adds what the ULP has said to the step of an FPDU.
func (l *ladder) say(d capture.Dir, offset uint64, text string) {
	for _, steps := range [...][]step{l.last, l.first} {
		for i := range slices.Backward(steps) {
			if s := &steps[i]; s.kind == "fpdu" && s.dir == d && s.offset == offset {
				s.text += "; " + text
				return
			}
		}
	}
}
