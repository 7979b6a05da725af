package conform_test

import (
	"regexp"
	"testing"

	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// operationCases are those of Full Operation.
var operationCases = regexp.MustCompile("^(fpdu|ddp|rdmap|terminate)/")

// TestOperation runs every case of Full Operation in every dialect against our own
// endpoint, which passes all that concern it. Without IWARP_ALL some offers are made in one
// dialect only.
//
// Proves D05, D06, D07, D10, D11, D12, D13, D14, D15, D17, D18, D19, D22, D23, D24, D26, D27,
// D28, D32, D33, D36, D37, D38, D39, D40, D42, D44, E04, E09, F01, F02, F03, F04, F05, F06,
// F07, F08, F09, F10, F11, F12, F14, P01, P02, P04, P05, P06, P07, P08, P09, P10, P11, P13,
// P14, P15, P16, P18, P19, P20, P21, P22, P23, P24, P25, P26, P28, P29, P30, P31, P32, P33,
// P34, P35, P36, P37, P39, P40, P42, P46, P47, P48, P50, P53, P54, P55, P56, Q04, Q11, Q15,
// Q16, R01, R02, R04, Z05, Z08, Z10, Z11, Z12, Z27, X03.
func TestOperation(t *testing.T) {
	for _, c := range []struct {
		name    string
		offer   mpa.Offer
		excused string // what does not concern it
	}{
		{"default", mpa.Offer{}, "^fpdu/[a-z]+-(marker-.*|crc-off)$"},
		{"markers and depths", mpa.Offer{Markers: true, IRD: 8, ORD: 8}, "^fpdu/[a-z]+-crc-off$"},
		{"no CRC", mpa.Offer{NoCRC: true}, "^fpdu/[a-z]+-marker-"},
		{"markers, no CRC", mpa.Offer{Markers: true, NoCRC: true}, "^$"},
	} {
		everywhere(t, setup{offer: c.offer}, c.name+"/", func(t *testing.T, s setup) {
			if c.name != "default" && s.dialect != mpa.DialectRFC6581 && !testrig.Everything() {
				t.SkipNow()
			}
			s.passes(t, operationCases, regexp.MustCompile(c.excused))
		})
	}
}

// TestOperationIsEitherWay has most cases of Full Operation for both roles.
func TestOperationIsEitherWay(t *testing.T) {
	n := map[mpa.Role]int{}
	for _, c := range conform.Cases() {
		if operationCases.MatchString(c.ID) {
			n[c.Role]++
		}
	}
	for _, role := range roles {
		if n[role] < 90 {
			t.Errorf("%v: %d cases", role, n[role])
		}
	}
}

// TestNoReads tells a peer without Reads, where the startup does not agree on any, from
// one that breaks a rule.
func TestNoReads(t *testing.T) {
	id := "ddp/responder-rsvd-untagged"
	noReads := toEndpoint(dislike(func(_ *ddp.Segment, op rdmap.Opcode) bool { return op == rdmap.OpReadRequest }))
	noReserved := toEndpoint(dislike(func(seg *ddp.Segment, _ rdmap.Opcode) bool { return seg.Rsvd != 0 }))
	for _, c := range []struct {
		name    string
		variant variant
		dialect mpa.Dialect
		want    conform.Verdict
	}{
		{"no Reads", noReads, mpa.DialectRFC5044, conform.Inconclusive},
		{"no Reads, though agreed on", noReads, mpa.DialectRFC6581, conform.Fail},
		{"reserved bits looked at", noReserved, mpa.DialectRFC5044, conform.Fail},
		{"reserved bits looked at, Reads agreed on", noReserved, mpa.DialectRFC6581, conform.Fail},
	} {
		v := c.variant.of(setup{dialect: c.dialect})
		v.resolve()
		v.setup.between = between(v.toPeer, v.fromPeer)
		for _, k := range conform.Cases() {
			if k.ID == id {
				t.Run(c.name, func(t *testing.T) { v.verdict(t, k, c.want) })
			}
		}
	}
}
