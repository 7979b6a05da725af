package page

import (
	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/rdmap"
)

// reads are the RDMA Reads whose Request is shown and whose Response is complete, in the order of their ends.
type reads struct {
	Count int    `json:"count"`
	Row   column `json:"row"`   // of the Request, among the FPDUs
	First column `json:"first"` // from the Request to the first segment of the Response, in ns
	Last  column `json:"last"`  // and to all of it
	// Acked is how many packets after the Request TCP acknowledged it, 0 if that is not known, and After how many ns.
	Acked column `json:"acked"`
	After column `json:"after"`

	open [2][]openRead // by the direction of the Request, in its order
}

// An openRead is a Request without its Response.
type openRead struct {
	row    int
	packet uint64 // that completed it
	rdmap.ReadRequest
}

// asked takes note of a Request, whose row is the next one.
func (l *reads) asked(row int, f *decode.FPDU) {
	l.open[f.Dir] = append(l.open[f.Dir], openRead{row, f.Last.Number, *f.ReadRequest})
}

// Read is part of [decode.Consumer].
func (p *Page) Read(c *decode.Connection, r *decode.Read) {
	own := shown(c)
	if own == nil {
		return
	}
	l := &own.reads
	row, ok := l.answered(r.Dir, r)
	if !ok {
		return
	}
	l.Row.add(0, uint64(row))
	l.First.plain(int64(r.First.Time.Sub(r.Request.Time)))
	l.Last.plain(int64(r.Latency()))
	acked := r.Acked
	if acked.Number == 0 {
		acked = r.Request
	}
	l.Acked.plain(int64(acked.Number - r.Request.Number))
	l.After.plain(int64(acked.Time.Sub(r.Request.Time)))
	l.Count++
}

// answered finds the row of a Request, and forgets it and those before it: Responses come in the order of Requests.
func (l *reads) answered(d capture.Dir, r *decode.Read) (row int, ok bool) {
	for i, o := range l.open[d] {
		if o.packet == r.Request.Number && o.ReadRequest == r.ReadRequest {
			l.open[d] = l.open[d][i+1:]
			return o.row, true
		}
	}
	return 0, false
}
