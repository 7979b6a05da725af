package ulp

import (
	"encoding/binary"
	"fmt"

	"github.com/goiwarp/iwarp/internal/wording"
)

// Statuses of SCSI that tell of a failure: not GOOD (0x00) and CONDITION MET (0x04).
const checkCondition = 0x02

var scsiStatuses = map[byte]string{checkCondition: "CHECK CONDITION", 0x08: "BUSY", 0x18: "RESERVATION CONFLICT",
	0x28: "TASK SET FULL", 0x30: "ACA ACTIVE", 0x40: "TASK ABORTED"}

// Sense keys, of sense data of a CHECK CONDITION. With three of them nothing has failed: each new initiator is told by a
// UNIT ATTENTION that there was a reset.
var senseKeys = [16]string{"NO SENSE", "RECOVERED ERROR", "NOT READY", "MEDIUM ERROR", "HARDWARE ERROR", "ILLEGAL REQUEST",
	"UNIT ATTENTION", "DATA PROTECT", "BLANK CHECK", "VENDOR SPECIFIC", "COPY ABORTED", "ABORTED COMMAND", "0xc",
	"VOLUME OVERFLOW", "MISCOMPARE", "COMPLETED"}

var harmlessSense = [16]bool{0: true, 1: true, 6: true}

// unknownRequest is what a target says of a command, or of a page, that it does not have.
const unknownRequest = "CHECK CONDITION, ILLEGAL REQUEST"

// Operation codes of SCSI: SPC-4, section 6, and SBC-3, section 5.
const (
	scsiRead10, scsiWrite10 = 0x28, 0x2a
	scsiRead16, scsiWrite16 = 0x88, 0x8a
)

var scsiOperations = map[byte]string{
	0x00: "TEST UNIT READY", 0x03: "REQUEST SENSE", 0x08: "READ(6)", 0x0a: "WRITE(6)", 0x12: "INQUIRY", 0x15: "MODE SELECT(6)",
	0x1a: "MODE SENSE(6)", 0x1b: "START STOP UNIT", 0x1e: "PREVENT ALLOW MEDIUM REMOVAL", 0x25: "READ CAPACITY(10)",
	scsiRead10: "READ(10)", scsiWrite10: "WRITE(10)", 0x2e: "WRITE AND VERIFY(10)", 0x2f: "VERIFY(10)",
	0x35: "SYNCHRONIZE CACHE(10)", 0x41: "WRITE SAME(10)", 0x42: "UNMAP", 0x4d: "LOG SENSE", 0x55: "MODE SELECT(10)",
	0x5a: "MODE SENSE(10)", 0x5e: "PERSISTENT RESERVE IN", 0x5f: "PERSISTENT RESERVE OUT", 0x83: "EXTENDED COPY",
	0x85: "ATA PASS-THROUGH(16)", scsiRead16: "READ(16)", 0x89: "COMPARE AND WRITE", scsiWrite16: "WRITE(16)", 0x8f: "VERIFY(16)",
	0x91: "SYNCHRONIZE CACHE(16)", 0x93: "WRITE SAME(16)", 0x9e: "SERVICE ACTION IN(16)", 0xa0: "REPORT LUNS",
	0xa1: "ATA PASS-THROUGH(12)", 0xa3: "MAINTENANCE IN", 0xa4: "MAINTENANCE OUT", 0xa8: "READ(12)", 0xaa: "WRITE(12)",
}

// scsiProbes are the operations that initiators try out, to ask for what a target has, and to have it write zeros.
var scsiProbes = map[byte]bool{0x12: true, 0x1a: true, 0x41: true, 0x42: true, 0x4d: true, 0x5a: true, 0x5e: true, 0x85: true,
	0x93: true, 0x9e: true, 0xa1: true, 0xa3: true}

// scsiName names a command by its descriptor block, and tells whether initiators try it out.
func scsiName(cdb []byte) (name string, probe bool) {
	name, known := scsiOperations[cdb[0]]
	switch {
	case !known:
		return fmt.Sprintf("operation %#02x", cdb[0]), false
	case cdb[0] == scsiRead10, cdb[0] == scsiWrite10:
		name += blocks(uint32(binary.BigEndian.Uint16(cdb[7:])), uint64(binary.BigEndian.Uint32(cdb[2:])))
	case cdb[0] == scsiRead16, cdb[0] == scsiWrite16:
		name += blocks(binary.BigEndian.Uint32(cdb[10:]), binary.BigEndian.Uint64(cdb[2:]))
	}
	return name, scsiProbes[cdb[0]]
}

func blocks(n uint32, at uint64) string {
	return fmt.Sprintf(" of %s at %d", wording.Count(n, "block"), at)
}

// scsiStatus is that of a SCSI Response (RFC 7143, section 11.4), with the key of its sense data.
func scsiStatus(pdu []byte) (status string, fails bool) {
	name, known := scsiStatuses[pdu[3]]
	switch {
	case pdu[2] != 0:
		return fmt.Sprintf("target failure, response %#02x", pdu[2]), true
	case !known:
		return "", false
	case pdu[3] != checkCondition:
		return name, true
	}
	sense := senseData(pdu)
	if len(sense) < 3 {
		return name, true
	}
	key := sense[2] // of the fixed format
	if format := sense[0] & 0x7f; format == 0x72 || format == 0x73 {
		key = sense[1] // of descriptors
	}
	return name + ", " + senseKeys[key&0xf], !harmlessSense[key&0xf]
}

// senseData is what follows the header, after additional headers and a length (RFC 7143, section 11.4.7).
func senseData(pdu []byte) []byte {
	rest := pdu[iscsiLen:]
	if more := 4 * int(pdu[4]); more+2 <= len(rest) {
		rest = rest[more:]
		return rest[2:min(len(rest), 2+int(binary.BigEndian.Uint16(rest)))]
	}
	return nil
}
