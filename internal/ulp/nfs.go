package ulp

import (
	"fmt"
	"strings"
)

// Programs of RPC.
const (
	programNFS      = 100003
	programACL      = 100227
	programCallback = 0x40000000
)

var programs = map[uint32]string{
	100000: "portmap", programNFS: "NFS", 100005: "MOUNT", 100021: "NLM", 100024: "STATUS", programACL: "NFS_ACL",
	programCallback: "NFSv4 callback",
}

// Procedures of NFS version 3: RFC 1813, section 3.
var nfs3Procedures = [...]string{"NULL", "GETATTR", "SETATTR", "LOOKUP", "ACCESS", "READLINK", "READ", "WRITE", "CREATE",
	"MKDIR", "SYMLINK", "MKNOD", "REMOVE", "RMDIR", "RENAME", "LINK", "READDIR", "READDIRPLUS", "FSSTAT", "FSINFO",
	"PATHCONF", "COMMIT"}

// Procedures of NFS_ACL version 3, which no RFC describes.
var aclProcedures = [...]string{"NULL", "GETACL", "SETACL"}

// Operations of NFS version 4, from 3 on: RFC 7862, section 15, and RFC 8276.
var nfs4Operations = strings.Fields("ACCESS CLOSE COMMIT CREATE DELEGPURGE DELEGRETURN GETATTR GETFH LINK LOCK LOCKT " +
	"LOCKU LOOKUP LOOKUPP NVERIFY OPEN OPENATTR OPEN_CONFIRM OPEN_DOWNGRADE PUTFH PUTPUBFH PUTROOTFH READ READDIR " +
	"READLINK REMOVE RENAME RENEW RESTOREFH SAVEFH SECINFO SETATTR SETCLIENTID SETCLIENTID_CONFIRM VERIFY WRITE " +
	"RELEASE_LOCKOWNER BACKCHANNEL_CTL BIND_CONN_TO_SESSION EXCHANGE_ID CREATE_SESSION DESTROY_SESSION FREE_STATEID " +
	"GET_DIR_DELEGATION GETDEVICEINFO GETDEVICELIST LAYOUTCOMMIT LAYOUTGET LAYOUTRETURN SECINFO_NO_NAME SEQUENCE " +
	"SET_SSV TEST_STATEID WANT_DELEGATION DESTROY_CLIENTID RECLAIM_COMPLETE ALLOCATE COPY COPY_NOTIFY DEALLOCATE " +
	"IO_ADVISE LAYOUTERROR LAYOUTSTATS OFFLOAD_CANCEL OFFLOAD_STATUS READ_PLUS SEEK WRITE_SAME CLONE GETXATTR SETXATTR " +
	"LISTXATTRS REMOVEXATTR")

const (
	firstOperation = 3
	opGetAttr      = 9
	opGetFH        = 10
	opPutFH        = 22
	opPutRootFH    = 24
	opSaveFH       = 32
	opSequence     = 53

	sequenceLen = 32  // bytes of its arguments
	maxFH       = 128 // bytes
	maxTag      = 1024
	maxBitmap   = 8 // words
)

func operation(op uint32) string {
	if i := int(op) - firstOperation; i >= 0 && i < len(nfs4Operations) {
		return nfs4Operations[i]
	}
	return ""
}

// title names program, version and procedure.
func (c *call) title() string {
	if c == nil || c.program == 0 {
		return "RPC"
	}
	name, known := programs[c.program]
	switch {
	case !known:
		return fmt.Sprintf("program %d version %d procedure %d", c.program, c.version, c.procedure)
	case c.isNFS4():
		return "NFSv4 COMPOUND"
	case c.program == programNFS && c.version == 3 && c.procedure < uint32(len(nfs3Procedures)):
		return "NFSv3 " + nfs3Procedures[c.procedure]
	case c.of(programACL) && c.version == 3 && c.procedure < uint32(len(aclProcedures)):
		return "NFS_ACL " + aclProcedures[c.procedure]
	case c.procedure == 0:
		return name + " NULL"
	}
	return fmt.Sprintf("%s version %d procedure %d", name, c.version, c.procedure)
}

func (c *call) of(program uint32) bool { return c != nil && c.program == program }

func (c *call) isNFS4() bool { return c.of(programNFS) && c.version == 4 && c.procedure == 1 }

// operations names the operation of a COMPOUND that follows those which say where it goes, and what the client wants to
// know on the way.
func operations(x *xdr) string {
	x.opaque(maxTag)
	minor, n := x.u32(), x.u32()
	if x.bad || minor > 2 || n == 0 {
		return ""
	}
	op := x.u32()
	for i := uint32(1); i < n && !x.bad; i++ {
		switch op {
		case opSequence:
			x.take(sequenceLen)
		case opPutFH:
			x.opaque(maxFH)
		case opGetAttr:
			x.words(maxBitmap)
		case opPutRootFH, opSaveFH, opGetFH:
		default:
			return named(op)
		}
		op = x.u32()
	}
	if x.bad {
		return ""
	}
	return named(op)
}

func named(op uint32) string {
	if name := operation(op); name != "" {
		return " " + name
	}
	return ""
}

// hasStatus reports whether the results of a call begin with a status of NFS.
func (c *call) hasStatus() bool {
	switch {
	case c == nil || c.procedure == 0 || c.sealed:
		return false
	case c.program == programACL, c.program == programNFS && c.version == 3:
		return c.version == 3
	}
	return c.isNFS4()
}

// results reads the status at the head of the results.
func (c *call) results(x *xdr, whole bool) line {
	if !c.hasStatus() {
		return line{text: ": accepted"}
	}
	all := x.b
	status := x.u32()
	name, known := nfsStatus(status, c.version)
	switch {
	case x.bad || !known:
		return line{text: ": accepted"}
	case status == 0:
		return line{text: ": OK"}
	}
	return c.failed(name, status, all, whole)
}

// failed says what a status tells, of all that the results have.
func (c *call) failed(name string, status uint32, all []byte, whole bool) line {
	l := line{text: ": " + name, failure: name + " of " + strings.TrimPrefix(c.name, "NFSv3 "), advice: nfsAdvice[status]}
	if c.isNFS4() {
		if op, last := tail(all); whole && last == status && len(all) > 12 && operation(op) != "" {
			name += " of " + operation(op)
		}
		l.text, l.failure = ": "+name, name
	}
	if ordinaryNFS[status] {
		return line{text: l.text}
	}
	return l
}
