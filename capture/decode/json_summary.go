package decode

import (
	"cmp"
	"encoding/hex"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/rdmap"
)

type jsonSummary struct {
	Event      string            `json:"event"`
	Network    string            `json:"network,omitempty"`
	Connection int               `json:"connection"`
	Midstream  bool              `json:"midstream,omitempty"`
	Confidence string            `json:"confidence,omitempty"`
	Initiator  string            `json:"initiator,omitempty"`
	Dialect    string            `json:"dialect,omitempty"`
	Agreed     bool              `json:"agreed"`
	Rejected   bool              `json:"rejected"`
	Startups   int               `json:"startups"`
	Version    *uint8            `json:"version,omitempty"`
	CRC        bool              `json:"crc"`
	RTR        *jsonRTR          `json:"rtr,omitempty"`
	ULP        *jsonULPCount     `json:"ulp,omitempty"`
	Forward    jsonHalf          `json:"forward"`
	Backward   jsonHalf          `json:"backward"`
	Findings   jsonCounts        `json:"findings"`
	Suppressed map[string]uint64 `json:"suppressed,omitempty"`
	*jsonSession
}

type jsonULPCount struct {
	Protocol string `json:"protocol"`
	Messages uint64 `json:"messages"`
	Failures uint64 `json:"failures"`
	// Latency is of answers.
	Latency   *jsonDistribution `json:"latency_ns,omitempty"`
	Forgotten bool              `json:"forgotten,omitempty"`
}

type jsonCounts struct {
	Errors   uint64 `json:"errors"`
	Warnings uint64 `json:"warnings"`
	Notes    uint64 `json:"notes"`
}

func countsOf(n [3]uint64) jsonCounts { return jsonCounts{n[Error], n[Warning], n[Note]} }

type jsonRTR struct {
	PeerToPeer bool   `json:"peer_to_peer"`
	Offered    string `json:"offered"`
	Answered   string `json:"answered"`
	Sent       string `json:"sent"`
}

type jsonHalf struct {
	Addr        string             `json:"addr"`
	Revision    *int               `json:"revision,omitempty"`
	Markers     bool               `json:"markers"`
	Enhanced    *jsonEnhanced      `json:"enhanced,omitempty"`
	PrivateData string             `json:"private_data,omitempty"`
	TCP         capture.Count      `json:"tcp"`
	FPDUs       uint64             `json:"fpdus"`
	Bytes       uint64             `json:"bytes"`
	Content     uint64             `json:"ulpdu_bytes"`
	Malformed   uint64             `json:"malformed,omitempty"`
	Bad         uint64             `json:"bad"`
	Cut         uint64             `json:"cut"`
	Lost        uint64             `json:"lost"`
	Undecoded   uint64             `json:"undecoded"`
	Markered    uint64             `json:"marker_count"`
	Ops         map[string]OpCount `json:"messages"`
	Sizes       *jsonDistribution  `json:"fpdu_sizes,omitempty"`
	Segments    uint64             `json:"segments"`
	Aligned     uint64             `json:"aligned"`
	Largest     int                `json:"largest_segment"`
	Wire        Alignment          `json:"wire"`
	Memory      *Memory            `json:"memory,omitempty"`
	Reads       *jsonDistribution  `json:"read_latency_ns,omitempty"`
	Outstanding int                `json:"outstanding_reads"`
	STags       int                `json:"stags_written"`
	End         *jsonEnd           `json:"end,omitempty"`
}

type jsonDistribution struct {
	Count  uint64  `json:"count"`
	Min    uint64  `json:"min"`
	Median uint64  `json:"median"`
	P99    uint64  `json:"p99"`
	Max    uint64  `json:"max"`
	Mean   float64 `json:"mean"`
}

func distributionOf(d *Distribution) *jsonDistribution {
	if d.Count == 0 {
		return nil
	}
	return &jsonDistribution{d.Count, d.Min, d.Percentile(50), d.Percentile(99), d.Max, d.Mean()}
}

type jsonEnd struct {
	Reason string `json:"reason"`
	Offset uint64 `json:"offset"`
	Packet uint64 `json:"packet"`
	Peer   bool   `json:"by_peer,omitempty"`
}

// Ended is part of Consumer.
func (j *JSON) Ended(c *Connection) {
	s := jsonSummary{
		Event: "summary", Network: c.network(), Connection: c.TCP.Number, Midstream: c.Midstream, Agreed: c.Agreed,
		Rejected: c.Rejected, Startups: c.Startups,
		CRC: c.CRC, Forward: halfOf(c, capture.Forward), Backward: halfOf(c, capture.Backward),
		Findings: countsOf(c.Findings), Suppressed: c.Suppressed, jsonSession: sessionOf(c),
	}
	if c.Midstream && c.Session == nil {
		s.Confidence = c.Confidence.String()
	} else {
		s.Initiator = dirName(c.Initiator)
	}
	if u := &c.ULP; u.Messages > 0 || u.Forgotten {
		s.ULP = &jsonULPCount{u.Protocol, u.Messages, u.Failures, distributionOf(&u.Latency), u.Forgotten}
	}
	if c.Dialect != 0 {
		name, _ := c.Dialect.MarshalText()
		s.Dialect = string(name)
	}
	if (c.Agreed || c.Midstream) && c.Version != versionUnknown {
		s.Version = &c.Version
	}
	if r := &c.RTR; r.PeerToPeer || r.Sent != 0 {
		s.RTR = &jsonRTR{r.PeerToPeer, r.Offered.String(), r.Answered.String(), r.Sent.String()}
	}
	j.put(s)
}

func halfOf(c *Connection, d capture.Dir) jsonHalf {
	h := &c.Halves[d]
	o := jsonHalf{
		Addr: c.TCP.Halves[d].Addr.String(), Markers: c.Markers[d], Enhanced: enhancedOf(c.Enhanced[d]),
		PrivateData: hex.EncodeToString(c.PrivateData[d]), FPDUs: h.FPDUs, Bytes: h.Bytes,
		Content: h.Content, Malformed: h.Malformed, Bad: h.Bad, Cut: h.Cut,
		Lost: h.Lost, Undecoded: h.Undecoded, Markered: h.MarkerCount, Ops: map[string]OpCount{},
		Sizes: distributionOf(&h.Sizes), Segments: h.Segments,
		Aligned: h.Aligned, Largest: h.LargestSegment, Wire: h.Wire, Reads: distributionOf(&h.Reads),
		Outstanding: h.OutstandingReads, STags: h.STags,
	}
	o.TCP = c.TCP.Halves[d].Count
	if c.Revisions[d] >= 0 {
		o.Revision = &c.Revisions[d]
	}
	if h.Bad+h.Cut+h.Lost == 0 {
		o.Memory = &h.Memory
	}
	for op, n := range h.Ops {
		if n.Segments > 0 {
			o.Ops[rdmap.Opcode(op).String()] = n
		}
	}
	if h.Ended {
		o.End = &jsonEnd{h.End.Reason.String(), h.End.Offset, h.End.Packet.Number, h.End.Peer}
	}
	return o
}

type jsonTotals struct {
	Event        string       `json:"event"`
	Packets      uint64       `json:"packets"`
	Bytes        uint64       `json:"bytes"`
	Connections  uint64       `json:"connections"`
	IWARP        uint64       `json:"iwarp"`
	Associations uint64       `json:"associations,omitempty"`
	Sessions     uint64       `json:"sessions,omitempty"`
	Failed       uint64       `json:"failed"`
	Rejected     uint64       `json:"rejected"`
	Skipped      uint64       `json:"skipped"`
	Unread       []jsonUnread `json:"unread,omitempty"`
	Illegible    uint64       `json:"illegible,omitempty"`
	Evicted      uint64       `json:"evicted,omitempty"`
	Cut          uint64       `json:"cut,omitempty"`
	Dropped      uint64       `json:"dropped,omitempty"`
	Findings     jsonCounts   `json:"findings"`
	Backwards    uint64       `json:"backwards,omitempty"`
	BackwardsBy  int64        `json:"backwards_by_ns,omitempty"`
	Version      string       `json:"version,omitempty"`
	Time         time.Time    `json:"time,omitzero"`
}

type jsonUnread struct {
	Why     string `json:"why"`
	Packets uint64 `json:"packets"`
}

// unreadOf lists the packets that could not be read, by why.
func unreadOf(n Totals) (list []jsonUnread) {
	for u, packets := range n.Unread {
		list = append(list, jsonUnread{u.String(), packets})
	}
	slices.SortFunc(list, func(a, b jsonUnread) int { return cmp.Compare(a.Why, b.Why) })
	return list
}

// Totals prints the last object.
func (j *JSON) Totals(n Totals) {
	j.put(jsonTotals{
		"totals", n.Packets, n.Bytes, n.Connections, n.IWARP, n.Associations, n.Sessions, n.Failed, n.Rejected,
		n.Skipped, unreadOf(n), n.Illegible, n.Evicted, n.Cut, n.Dropped, countsOf(n.Findings),
		n.Backwards, n.BackwardsBy.Nanoseconds(), j.cfg.Version, j.cfg.Time.UTC().Truncate(time.Second),
	})
}
