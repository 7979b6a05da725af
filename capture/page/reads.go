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
	// Faulty is Requests that were answered by what is no right Response: rows, and ns up to that.
	Faulty     int    `json:"faulty"`
	FaultyRow  column `json:"faultyRow"`
	FaultyLast column `json:"faultyLast"`

	open [2][]openRead // by the direction of the Request, in its order
}

// An openRead is a Request without its Response.
type openRead struct {
	row    int
	packet capture.Stamp // that completed it
	rdmap.ReadRequest
}

// asked takes note of a Request, whose row is the next one.
func (l *reads) asked(row int, f *decode.FPDU) {
	l.open[f.Dir] = append(l.open[f.Dir], openRead{row, f.Last, *f.ReadRequest})
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
		if o.packet.Number == r.Request.Number && o.ReadRequest == r.ReadRequest {
			l.open[d] = l.open[d][i+1:]
			return o.row, true
		}
	}
	return 0, false
}

// readResponse is the name of the findings about Responses.
const readResponse = "read-response"

// found takes note of a Response that is not right: it ends the oldest Request of the other direction all the same, as
// package decode counts those that are outstanding.
func (l *reads) found(f *decode.Finding) {
	asked := f.Dir.Peer()
	if f.Name != readResponse || len(l.open[asked]) == 0 {
		return
	}
	o := l.open[asked][0]
	l.open[asked] = l.open[asked][1:]
	l.FaultyRow.add(0, uint64(o.row))
	l.FaultyLast.plain(int64(f.Packet.Time.Sub(o.packet.Time)))
	l.Faulty++
}
