package iwarp

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/mpa"
)

// TestPresetFills has an offer of zeros filled in by a preset, and one that has all fields kept as it is. The
// fields that are set by turns tell each of them from the others.
func TestPresetFills(t *testing.T) {
	full := mpa.Offer{
		Dialect: mpa.DialectRFC5044, Kind: mpa.KindRDMAC, RTR: mpa.RTRRead, Timeout: time.Minute,
		Messages: true, Markers: true,
		NoCRC: true, ClientServer: true, IRD: 3, ORD: 4, MaxIRD: 5, PrivateData: []byte("data"),
	}
	fields := reflect.TypeFor[mpa.Offer]()
	for i := range fields.NumField() {
		if reflect.ValueOf(full).Field(i).IsZero() {
			t.Errorf("%s has no value here", fields.Field(i).Name)
		}
		var one mpa.Offer
		reflect.ValueOf(&one).Elem().Field(i).Set(reflect.ValueOf(full).Field(i))
		for what, got := range map[string]mpa.Offer{"filled in": fill(mpa.Offer{}, one, false),
			"kept": fill(one, mpa.Offer{}, false)} {
			if !reflect.DeepEqual(got, one) {
				t.Errorf("%s, %s: %+v", fields.Field(i).Name, what, got)
			}
		}
	}
	if got := fill(mpa.Offer{ORD: 1}, full, false); got.IRD != 0 || got.ORD != 1 {
		t.Errorf("an ORD alone: %+v", got)
	}
	if got := fill(mpa.Offer{}, full, true); got.IRD != 0 || got.ORD != 0 || got.MaxIRD != 0 || !got.Markers {
		t.Errorf("without Reads: %+v", got)
	}
}

// TestPresetServes: a Listener's own dialects come first.
func TestPresetServes(t *testing.T) {
	its, own := []mpa.Dialect{mpa.DialectRFC5044}, []mpa.Dialect{mpa.DialectRFC6581}
	p := &Preset{Dialects: its}
	if got := p.serves(nil); !slices.Equal(got, its) {
		t.Errorf("without dialects of its own: %v", got)
	}
	if got := p.serves(own); !slices.Equal(got, own) {
		t.Errorf("with dialects of its own: %v", got)
	}
}

// TestPresetMeetsDepths answers a Request that has depths in its private data, and one in which there is too little for
// them.
func TestPresetMeetsDepths(t *testing.T) {
	p, o := &Preset{SMBDirect: true}, mpa.Offer{IRD: 6, ORD: 5}
	for _, c := range []struct {
		asked []byte
		ord   mpa.Depth
	}{
		{ulpdata.SMBDirect{IRD: 2, ORD: 1}.Append(nil), 2},
		{[]byte{0, 0, 1}, 5},
	} {
		got := p.addDepths(o, mpa.DialectRFC5044, &mpa.Request{PrivateData: c.asked})
		said, _, err := ulpdata.ParseSMBDirect(got.PrivateData)
		if err != nil || got.ORD != c.ord || said.ORD != uint32(c.ord) || said.IRD == 0 {
			t.Errorf("asked % x: %+v, told the peer %+v (%v)", c.asked, got, said, err)
		}
	}
}
