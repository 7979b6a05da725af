package rdmap

import (
	"errors"
	"testing"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
)

// Proves P14: layer, type and code of figure 9, and DDP's and MPA's with layers of their own.
func TestCodes(t *testing.T) {
	for _, tt := range []struct {
		code                Code
		layer, etype, code8 uint8
		name                string
	}{
		{CodeLocalCatastrophic, 0, 0, 0x00, "RDMAP/Local Catastrophic (0x0000)"},
		{0x00a5, 0, 0, 0xa5, "RDMAP/Local Catastrophic (0x00a5)"},
		{CodeInvalidSTag, 0, 1, 0x00, "RDMAP/Remote Protection/invalid STag (0x0100)"},
		{CodeBaseOrBounds, 0, 1, 0x01, "RDMAP/Remote Protection/base or bounds violation (0x0101)"},
		{CodeAccessRights, 0, 1, 0x02, "RDMAP/Remote Protection/access rights violation (0x0102)"},
		{CodeSTagNotAssociated, 0, 1, 0x03, "RDMAP/Remote Protection/STag not associated with RDMAP Stream (0x0103)"},
		{CodeTOWrap, 0, 1, 0x04, "RDMAP/Remote Protection/TO wrap (0x0104)"},
		{CodeProtectionCannotInvalidate, 0, 1, 0x09, "RDMAP/Remote Protection/STag cannot be invalidated (0x0109)"},
		{CodeRemoteProtectionUnspecified, 0, 1, 0xff, "RDMAP/Remote Protection/unspecified error (0x01ff)"},
		{CodeInvalidVersion, 0, 2, 0x05, "RDMAP/Remote Operation/invalid RDMAP version (0x0205)"},
		{CodeUnexpectedOpcode, 0, 2, 0x06, "RDMAP/Remote Operation/unexpected opcode (0x0206)"},
		{CodeCatastrophicStream, 0, 2, 0x07, "RDMAP/Remote Operation/catastrophic error, localized to RDMAP Stream (0x0207)"},
		{CodeCatastrophicGlobal, 0, 2, 0x08, "RDMAP/Remote Operation/catastrophic error, global (0x0208)"},
		{CodeOperationCannotInvalidate, 0, 2, 0x09, "RDMAP/Remote Operation/STag cannot be invalidated (0x0209)"},
		{CodeRemoteOperationUnspecified, 0, 2, 0xff, "RDMAP/Remote Operation/unspecified error (0x02ff)"},
		{CodeDDPLocalCatastrophic, 1, 0, 0x00, "DDP/Local Catastrophic (0x1000)"},
		{CodeDDPInvalidSTag, 1, 1, 0x00, "DDP/Tagged Buffer/invalid STag (0x1100)"},
		{CodeDDPBaseOrBounds, 1, 1, 0x01, "DDP/Tagged Buffer/base or bounds violation (0x1101)"},
		{CodeDDPSTagNotAssociated, 1, 1, 0x02, "DDP/Tagged Buffer/STag not associated with DDP Stream (0x1102)"},
		{CodeDDPTOWrap, 1, 1, 0x03, "DDP/Tagged Buffer/TO wrap (0x1103)"},
		{CodeDDPTaggedInvalidVersion, 1, 1, 0x04, "DDP/Tagged Buffer/invalid DDP version (0x1104)"},
		{CodeDDPInvalidQN, 1, 2, 0x01, "DDP/Untagged Buffer/invalid QN (0x1201)"},
		{CodeDDPInvalidMSNNoBuffer, 1, 2, 0x02, "DDP/Untagged Buffer/invalid MSN, no buffer available (0x1202)"},
		{CodeDDPInvalidMSNRange, 1, 2, 0x03, "DDP/Untagged Buffer/invalid MSN, MSN range is not valid (0x1203)"},
		{CodeDDPInvalidMO, 1, 2, 0x04, "DDP/Untagged Buffer/invalid MO (0x1204)"},
		{CodeDDPMessageTooLong, 1, 2, 0x05, "DDP/Untagged Buffer/DDP Message too long for available buffer (0x1205)"},
		{CodeDDPUntaggedInvalidVersion, 1, 2, 0x06, "DDP/Untagged Buffer/invalid DDP version (0x1206)"},
		{CodeMPAConnectionLost, 2, 0, 0x01, "LLP/MPA/TCP connection closed, terminated or lost (0x2001)"},
		{CodeMPACRC, 2, 0, 0x02, "LLP/MPA/CRC mismatch (0x2002)"},
		{CodeMPAMarker, 2, 0, 0x03, "LLP/MPA/marker and ULPDU Length field mismatch (0x2003)"},
		{CodeMPAStartupFrame, 2, 0, 0x04, "LLP/MPA/invalid MPA Request Frame or MPA Reply Frame (0x2004)"},
		{CodeMPALocalCatastrophic, 2, 0, 0x05, "LLP/MPA/local catastrophic (0x2005)"},
		{CodeMPAInsufficientIRD, 2, 0, 0x06, "LLP/MPA/insufficient IRD resources (0x2006)"},
		{CodeMPANoMatchingRTR, 2, 0, 0x07, "LLP/MPA/no matching RTR option (0x2007)"},
	} {
		if c := tt.code; c.Layer() != tt.layer || c.EType() != tt.etype || c.ErrorCode() != tt.code8 ||
			!c.Known() || c.String() != tt.name {
			t.Errorf("got %d/%d/%#02x %v, known %t; want %d/%d/%#02x %v",
				c.Layer(), c.EType(), c.ErrorCode(), c, c.Known(), tt.layer, tt.etype, tt.code8, tt.name)
		}
	}
}

// Proves P14: an error code of MPA has layer 2 and type 0 in a Terminate.
func TestCodeOfMPA(t *testing.T) {
	if got := CodeOfMPA(mpa.CodeMarker); got != 0x2003 {
		t.Error(got)
	}
}

func TestUnknownCodes(t *testing.T) {
	for code, want := range map[Code]string{
		0x0142: "RDMAP/Remote Protection/unknown (0x0142)",
		0x0200: "RDMAP/Remote Operation/unknown (0x0200)",
		0x0300: "RDMAP/unknown (0x0300)",
		0x1342: "DDP/unknown (0x1342)",
		0x2000: "LLP/unknown (0x2000)",
		0x2008: "LLP/unknown (0x2008)",
		0x2102: "LLP/unknown (0x2102)",
		0xf123: "unknown layer (0xf123)",
	} {
		if code.Known() || code.String() != want {
			t.Errorf("%v, known %t; want %v", code, code.Known(), want)
		}
	}
}

// Proves P14: an error of the DDP layer keeps its layer, type and code.
func TestFromDDP(t *testing.T) {
	if err := FromDDP(nil, OpSend); err != nil {
		t.Error(err)
	}
	e := &ddp.Error{Code: ddp.CodeInvalidMO, Field: "MO", Reason: "too high"}
	err := FromDDP(e, OpSend)
	if got := err.Error(); got != "rdmap: Send: MO: too high: DDP/Untagged Buffer/invalid MO (0x1204)" {
		t.Error(got)
	}
	if !errors.Is(err, e) || !errors.Is(err, &Error{Code: CodeDDPInvalidMO}) ||
		errors.Is(err, &Error{Code: CodeInvalidSTag}) || errors.Is(err, errors.ErrUnsupported) {
		t.Error("does not match by code")
	}
	alone := &Error{Code: CodeMPANoMatchingRTR, Reason: "no way"}
	if got := alone.Error(); got != "rdmap: no way: LLP/MPA/no matching RTR option (0x2007)" {
		t.Error(got)
	}
}
