package decode

import (
	"fmt"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// A finding is a kind of [Finding].
type finding struct {
	name     string
	id       string
	severity Severity
}

// The kinds of findings. docs/decode-json.md lists the names.
var (
	// Startup
	findReplyFirst  = finding{"reply-without-request", "Q03", Error}
	findWrongKey    = finding{"wrong-key", "Q02", Error}
	findReply       = finding{"bad-answer", "Q16", Error}
	findRequest     = finding{"bad-request", "Q16", Error}
	findRevisions   = finding{"revisions-do-not-fit", "N04", Warning}
	findRejected    = finding{"rejected", "Q10", Note}
	findClosed      = finding{"closed-at-startup", "Q16", Warning}
	findUnheard     = finding{"request-not-acknowledged", "", Warning}
	findNoStartup   = finding{"startup-missing", "", Note}
	findLate        = finding{"answer-too-late", "", Warning}
	findRefused     = finding{"connection-refused", "", Warning}
	findReset       = finding{"reset", "", Warning}
	findOpen        = finding{"startup-open", "", Note}
	findEarly       = finding{"bytes-before-the-answer", "Q09", Error}
	findNoRtrFrame  = finding{"no-rtr-frame", "T01", Warning}
	findRtrFrame    = finding{"bad-rtr-frame", "T05", Error}
	findStartKey    = finding{"bad-start-key", "K05", Error}
	findPlain0      = finding{"revision-0-plain", "N05", Note}
	findEcho        = finding{"reserved-echoed", "Q06", Note}
	findStartupBits = finding{"startup-reserved", "Q06", Note}
	findORDAbove    = finding{"reply-ord-above-ird", "E04", Error}
	findIRDBelow    = finding{"reply-ird-below-ord", "E03", Note}
	findNoNego      = finding{"reply-without-0x3fff", "E06", Error}
	findNegoAlone   = finding{"reply-0x3fff-unasked", "E06", Note}
	findModel       = finding{"reply-model", "E08", Error}
	findNoKinds     = finding{"no-rtr-kind", "E07", Warning}
	findAnswerKinds = finding{"reply-no-rtr-kind", "E08", Error}
	findKindFlags   = finding{"rtr-flags-without-a", "E07", Warning}
	findNoMatch     = finding{"no-common-rtr", "E10", Warning}

	// FPDUs
	findCRC       = finding{"crc-wrong", "F04", Error}
	findPad       = finding{"pad", "F03", Error}
	findMarker    = finding{"marker-wrong", "F08", Error}
	findCutOff    = finding{"fpdu-cut-off", "Q15", Warning}
	findOversized = finding{"fpdu-over-segments", "S01", Note}
	findResynced  = finding{"found-again", "", Note}
	findOtherMode = finding{"not-as-agreed", "F14", Warning}
	findCRCField  = finding{"crc-field-unused", "F05", Note}
	findGap       = finding{"capture-gap", "", Note}
	findDiffers   = finding{"retransmission-differs", "R06", Warning}

	// SCTP
	findIndication      = finding{"no-indication", "", Error}
	findStreams         = finding{"streams-differ", "", Error}
	findPPID            = finding{"wrong-ppid", "", Error}
	findOrdered         = finding{"ordered-message", "", Error}
	findFragmented      = finding{"fragmented", "", Warning}
	findSSNTwice        = finding{"ssn-twice", "", Error}
	findSSNSkipped      = finding{"ssn-skipped", "", Error}
	findSessionMessage  = finding{"session-message", "C01", Error}
	findSessionData     = finding{"session-private-data", "C02", Error}
	findSequence        = finding{"session-sequence", "C04", Error}
	findSegmentEarly    = finding{"segment-before-accept", "C04", Error}
	findInUse           = finding{"session-in-use", "C08", Error}
	findAnswerKind      = finding{"answer-kind", "C01", Error}
	findSessionRejected = finding{"session-rejected", "C03", Note}
	findSessionRefused  = finding{"session-refused", "C07", Warning}
	findNoTerminate     = finding{"no-session-terminate", "C04", Error}
	findAborted         = finding{"association-aborted", "", Warning}

	findUndecoded = finding{"not-decoded", "", Note}
	findMidstream = finding{"midstream", "", Note}

	// Order of the ends
	findSpokeFirst = finding{"responder-first", "Q11", Error}
	findNoRTR      = finding{"no-rtr", "E09", Error}
	findRTRKind    = finding{"rtr-kind", "E09", Error}
	findRTRPlain   = finding{"rtr-not-negotiated", "E09", Note}
	findRTRSTag    = finding{"rtr-stag-0", "", Note}

	findULP      = finding{"ulp-failure", "", Warning}
	findSlowRead = finding{"slow-read", "", Note}

	// DDP and RDMAP
	findShort          = finding{"ddp-too-short", "D36", Error}
	findVersion        = finding{"version", "N02", Error}
	findQueue          = finding{"queue", "P01", Error}
	findOpcode         = finding{"opcode", "P07", Error}
	findForm           = finding{"message-form", "P09", Error}
	findReserved       = finding{"reserved-bits", "P04", Note}
	findTagged         = finding{"tagged-message-mixed", "P18", Error}
	findRead32         = finding{"read-request-32-bytes", "P09", Error}
	findReadOrder      = finding{"read-request-byte-order", "P09", Warning}
	findMSN            = finding{"msn", "D17", Error}
	findMO             = finding{"mo", "D27", Error}
	findSegmentOrder   = finding{"segment-order", "D25", Note}
	findDepth          = finding{"too-many-reads", "P47", Error}
	findResponse       = finding{"read-response", "P28", Error}
	findAfterTerminate = finding{"after-terminate", "P39", Error}
	findTerminate      = finding{"terminate", "P13", Warning}
	findTerminateForm  = finding{"terminate-form", "P15", Error}
	findTerminateSIW   = finding{"terminate-swapped", "P13", Note}
)

// report tells of a finding, up to a bound for each kind. A note, and what the ULP reports, is
// only counted if it is equal to an earlier one of the direction.
func (c *conn) report(k finding, dir capture.Dir, offset uint64, p capture.Stamp, text, advice string) {
	c.reportBytes(k, dir, offset, p, nil, text, advice)
}

// reportBytes is report with the bytes that show the finding, if there are such.
func (c *conn) reportBytes(k finding, dir capture.Dir, offset uint64, p capture.Stamp, shown *Evidence, text, advice string) {
	if c.over != nil && c.over.suspects(suspicion{k, dir, offset, p, text, advice}) {
		return
	}
	usual := k.severity
	if usual > Note && c.droppedFrom() {
		k.severity, advice = Note, adviceDropped
	}
	c.pub.Findings[k.severity]++
	c.d.totals.Findings[k.severity]++
	if k.severity > Note && k != findULP {
		c.halves[dir].expectTerminate(k, offset)
	}
	if c.told == nil {
		c.told, c.notes = map[string]int{}, map[string]bool{}
	}
	once := k.severity == Note || k == findULP
	equal := once && c.notes[dir.String()+text]
	if !equal {
		c.told[k.name]++
	}
	if equal || c.told[k.name] > maxFindings {
		if c.pub.Suppressed == nil {
			c.pub.Suppressed = map[string]uint64{}
		}
		c.pub.Suppressed[k.name]++
		return
	}
	if once {
		c.notes[dir.String()+text] = true
	}
	c.d.finding = Finding{
		Severity: k.severity, Usual: usual, Name: k.name, ID: k.id, Dir: dir, Offset: offset, Packet: p, Text: text,
		Advice: advice, Evidence: shown,
	}
	c.d.to.Finding(c.pub, &c.d.finding)
}

// differs reports bytes that were sent twice and are not the same.
func (c *conn) differs(s *Segment) {
	text := fmt.Sprintf("%s sent again differ from those sent first", wording.Bytes(uint64(s.Repeated)))
	if s.First > 0 {
		text += fmt.Sprintf(", in packet %d", s.First)
	}
	c.report(findDiffers, s.Dir, s.Offset, s.Packet, text,
		"a sender that keeps no copy retransmits a buffer that its consumer has changed meanwhile; the receiver may see a wrong CRC or wrong data")
}

// failed reports an FPDU in error.
func (h *half) failed(f *FPDU) {
	if f.Err.Code != mpa.CodeCRC {
		h.full.bad = true
		h.inError1(findMarker, f)
		return
	}
	before := h.full.habit
	h.full.habit = habitNone
	switch {
	case f.ULPDU == nil:
		h.full.bad = true
	case f.mispadded():
		h.full.padded = true
		h.reportAt(findPad, f, fmt.Sprintf("FPDU %d: %s", f.Number, f.Err.Reason), f.Err.Hint)
		return
	default:
		// What a sender does to all CRCs alike is said once.
		if h.full.habit = habitOf(f.Bytes); h.full.habit == before {
			return
		}
	}
	h.inError1(findCRC, f)
}

// inError1 reports what MPA finds wrong with an FPDU.
func (h *half) inError1(k finding, f *FPDU) {
	h.reportAt(k, f, fmt.Sprintf("FPDU %d: bad %s: %s", f.Number, f.Err.Field, f.Err.Reason), f.Err.Hint)
}
