package ddp

import (
	"errors"
	"fmt"
	"testing"
)

// Proves D43: the types and codes of the table, and their names.
func TestCodes(t *testing.T) {
	for _, tt := range []struct {
		code  Code
		value uint16
		name  string
	}{
		{CodeLocalCatastrophic, 0x1000, "DDP/Local Catastrophic (0x1000)"},
		{CodeInvalidSTag, 0x1100, "DDP/Tagged Buffer/invalid STag (0x1100)"},
		{CodeBaseOrBounds, 0x1101, "DDP/Tagged Buffer/base or bounds violation (0x1101)"},
		{CodeSTagNotAssociated, 0x1102, "DDP/Tagged Buffer/STag not associated with DDP Stream (0x1102)"},
		{CodeTOWrap, 0x1103, "DDP/Tagged Buffer/TO wrap (0x1103)"},
		{CodeTaggedInvalidVersion, 0x1104, "DDP/Tagged Buffer/invalid DDP version (0x1104)"},
		{CodeInvalidQN, 0x1201, "DDP/Untagged Buffer/invalid QN (0x1201)"},
		{CodeInvalidMSNNoBuffer, 0x1202, "DDP/Untagged Buffer/invalid MSN, no buffer available (0x1202)"},
		{CodeInvalidMSNRange, 0x1203, "DDP/Untagged Buffer/invalid MSN, MSN range is not valid (0x1203)"},
		{CodeInvalidMO, 0x1204, "DDP/Untagged Buffer/invalid MO (0x1204)"},
		{CodeMessageTooLong, 0x1205, "DDP/Untagged Buffer/DDP Message too long for available buffer (0x1205)"},
		{CodeUntaggedInvalidVersion, 0x1206, "DDP/Untagged Buffer/invalid DDP version (0x1206)"},
	} {
		if uint16(tt.code) != tt.value || tt.code.String() != tt.name || !tt.code.Known() {
			t.Errorf("%#04x: %v, known %t; want %v", tt.value, tt.code, tt.code.Known(), tt.name)
		}
	}
	if got := Code(0x1300).String(); got != "DDP/unknown (0x1300)" {
		t.Error(got)
	}
}

// Proves D13: any version but the stream's is 0x1104 with T=1, 0x1206 with T=0.
func TestCheckVersion(t *testing.T) {
	for want := range uint8(2) {
		for got := range uint8(4) {
			for _, tagged := range []bool{true, false} {
				code := CodeUntaggedInvalidVersion
				if tagged {
					code = CodeTaggedInvalidVersion
				}
				err := CheckVersion(&Header{Tagged: tagged, Version: got}, want)
				if got == want && err != nil || got != want && (err == nil || err.Code != code) {
					t.Errorf("tagged %t, DV %d on a stream of version %d: %v", tagged, got, want, err)
				}
			}
		}
	}
}

// An error tells the field, what was expected and what was there.
func TestErrorText(t *testing.T) {
	q := NewUntaggedQueue(0)
	var err error = q.Check(seg(7, 0, 0, true), 1, 0)
	want := "ddp: MSN: expected 1 on queue 0, got 7: DDP/Untagged Buffer/invalid MSN, MSN range is not valid (0x1203)"
	if err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
	wrapped := fmt.Errorf("receive: %w", err)
	if !errors.Is(wrapped, &Error{Code: CodeInvalidMSNRange}) || errors.Is(wrapped, &Error{Code: CodeInvalidMO}) {
		t.Error("does not match by code")
	}
	if errors.Is(err, errors.ErrUnsupported) {
		t.Error("matches an error of another type")
	}
}

func TestHeaderString(t *testing.T) {
	for _, tt := range []struct {
		h    Header
		want string
	}{
		{Header{Tagged: true, Last: true, Version: 1, RsvdULP: 0x40, STag: 0x1234, TO: 0x10},
			"DDP tagged L=1 Rsvd=0 DV=1 RsvdULP=0x40 STag=0x00001234 TO=0x10"},
		{Header{Version: 1, RsvdULP: 0x44, ULP: 0xabc, QN: 1, MSN: 2, MO: 3},
			"DDP untagged L=0 Rsvd=0 DV=1 RsvdULP=0x44:00000abc QN=1 MSN=2 MO=3"},
	} {
		if got := tt.h.String(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
