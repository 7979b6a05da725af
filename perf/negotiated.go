package perf

import (
	"encoding/json"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/mpa"
)

// Negotiated is what the MPA startup of the measured connections came to.
type Negotiated struct {
	Network string `json:"network"`       // without MPA there are no revision, markers, CRC and EMSS
	TUN     string `json:"tun,omitempty"` // DEVICE=ADDRESS, where a TCP in user space is at a TUN device
	// Dialect is written as the option that asks for it, such as "rfc6581".
	Dialect         mpa.Dialect `json:"dialect"`
	Revision        int         `json:"revision"`
	MarkersReceived bool        `json:"markers_received"`
	MarkersSent     bool        `json:"markers_sent"`
	CRC             bool        `json:"crc"`
	IRD             int         `json:"ird"` // Reads the other end may have under way
	ORD             int         `json:"ord"` // Reads this end may have under way
	PeerToPeer      bool        `json:"peer_to_peer"`
	RTR             string      `json:"rtr"`
	EMSS            int         `json:"emss"`   // bytes, as of the startup: a Result has what it became
	MULPDU          int         `json:"mulpdu"` // the same
	FellBack        string      `json:"fell_back,omitempty"`

	// CC is the congestion control of the initiator's sockets, and CCPeer the responder's.
	// They are empty where the system does not tell.
	CC     string `json:"congestion_control,omitempty"`
	CCPeer string `json:"congestion_control_responder,omitempty"`
}

// MarshalJSON leaves out what there is not without MPA and TCP.
func (n Negotiated) MarshalJSON() ([]byte, error) {
	type plain Negotiated // without this method
	if over, err := network.Open(n.Network); err != nil || over.Streams {
		return json.Marshal(plain(n))
	}
	type absent *struct{}
	return json.Marshal(struct {
		plain
		Revision        absent `json:"revision,omitempty"`
		MarkersReceived absent `json:"markers_received,omitempty"`
		MarkersSent     absent `json:"markers_sent,omitempty"`
		CRC             absent `json:"crc,omitempty"`
		EMSS            absent `json:"emss,omitempty"`
	}{plain: plain(n)})
}

func negotiated(name string, qp *iwarp.QP) Negotiated {
	n := qp.Negotiated()
	over, device := network.SplitTUN(name)
	out := Negotiated{
		Network:         over,
		TUN:             device,
		Dialect:         n.Dialect,
		Revision:        int(n.Revision),
		MarkersReceived: n.MarkersReceive,
		MarkersSent:     n.MarkersSend,
		CRC:             n.CRC,
		IRD:             int(n.IRD),
		ORD:             int(n.ORD),
		PeerToPeer:      n.PeerToPeer,
		RTR:             "none",
		EMSS:            n.EMSS,
		MULPDU:          n.MULPDU,
	}
	if n.RTR != 0 {
		out.RTR = n.RTR.String()
	}
	if n.FellBack {
		out.FellBack = fmt.Sprint(n.FallbackReason)
	}
	return out
}
