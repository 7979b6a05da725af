package ulp_test

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/ulp"
)

// TestISER: a login, and a command that fails.
func TestISER(t *testing.T) {
	d := newDialogue(t, 3260)
	d.send("iser-login", "iser-loginresp", "iser-cmd")
	d.access(ulp.Access{STag: 0x99aa0001, TO: 0x7000, Length: 512})
	d.send("iser-resp")
	d.want("1 iSER: Login Request, task 0x00000020",
		"2 iSER: Login Response, task 0x00000020: login status 0x0201, authentication failure FAILS login status 0x0201, authentication failure of a Login Response",
		"3 iSER: SCSI Command TEST UNIT READY, task 0x00000021",
		"4 iSER: Write to STag 0x99aa0001: data of SCSI Command TEST UNIT READY, task 0x00000021",
		"5 iSER: SCSI Response, task 0x00000021, TEST UNIT READY: CHECK CONDITION FAILS CHECK CONDITION of TEST UNIT READY")
}

// TestISERHello: the ends say hello before the first command, which is iSER all the same.
func TestISERHello(t *testing.T) {
	d := newDialogue(t, 3260)
	d.sendFrom(0, []byte{0x20, 0xaa, 0, 16, 27: 0})
	d.sendFrom(1, []byte{0x30, 0xaa, 0, 8, 27: 0})
	d.send("iser-login", "iser-loginresp")
	d.want("1 iSER: Hello", "2 iSER: HelloReply", "3 iSER: Login Request, task 0x00000020",
		"4 iSER: Login Response, task 0x00000020: login status 0x0201, authentication failure FAILS login status 0x0201, authentication failure of a Login Response")
}

// TestSense: what a CHECK CONDITION says decides whether something has failed, in both formats, and after an additional
// header.
func TestSense(t *testing.T) {
	fixed := func(key byte) []byte { return []byte{0, 18, 0x70, 0, key, 17: 0} }
	for _, c := range []struct {
		more byte // words of additional headers
		data []byte
		want string
	}{
		{0, fixed(6), "CHECK CONDITION, UNIT ATTENTION"},
		{0, fixed(5), "CHECK CONDITION, ILLEGAL REQUEST FAILS CHECK CONDITION, ILLEGAL REQUEST of TEST UNIT READY"},
		{2, append(make([]byte, 8), fixed(1)...), "CHECK CONDITION, RECOVERED ERROR"},
		{0, []byte{0, 8, 0x72, 3, 0x11, 0, 0, 0, 0, 0},
			"CHECK CONDITION, MEDIUM ERROR FAILS CHECK CONDITION, MEDIUM ERROR of TEST UNIT READY"},
		{0, []byte{0, 2, 0x70, 0}, "CHECK CONDITION FAILS CHECK CONDITION of TEST UNIT READY"},
		{255, fixed(6), "CHECK CONDITION FAILS CHECK CONDITION of TEST UNIT READY"},
	} {
		d := newDialogue(t, 3260)
		d.send("iser-login", "iser-cmd")
		response := append(vector(t, "iser-resp"), c.data...)
		response[28+4] = c.more
		d.sendFrom(1, response)
		d.want("1 iSER: Login Request, task 0x00000020", "2 iSER: SCSI Command TEST UNIT READY, task 0x00000021",
			"3 iSER: SCSI Response, task 0x00000021, TEST UNIT READY: "+c.want)
	}
}

// TestSCSI: commands are named, and what an initiator tries out may be unknown to the target.
func TestSCSI(t *testing.T) {
	const illegal = "CHECK CONDITION, ILLEGAL REQUEST"
	for _, c := range []struct {
		cdb         []byte
		name, fails string
	}{
		{[]byte{0xa3, 0x0c}, "MAINTENANCE IN", ""},
		{[]byte{0x41, 7: 1}, "WRITE SAME(10)", ""},
		{[]byte{0x28, 0, 0, 0, 0, 72, 0, 0, 8}, "READ(10) of 8 blocks at 72", " FAILS " + illegal + " of READ(10) of 8 blocks at 72"},
		{[]byte{0x8a, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}, "WRITE(16) of 1 block at 4294967296",
			" FAILS " + illegal + " of WRITE(16) of 1 block at 4294967296"},
		{[]byte{0xc0}, "operation 0xc0", " FAILS " + illegal + " of operation 0xc0"},
	} {
		d := newDialogue(t, 3260)
		command := vector(t, "iser-cmd")
		copy(command[28+32:], c.cdb)
		d.send("iser-login")
		d.sendFrom(0, command)
		d.sendFrom(1, append(vector(t, "iser-resp"), 0, 3, 0x70, 0, 5))
		d.want("1 iSER: Login Request, task 0x00000020", "2 iSER: SCSI Command "+c.name+", task 0x00000021",
			"3 iSER: SCSI Response, task 0x00000021, "+c.name+": "+illegal+c.fails)
	}
}
