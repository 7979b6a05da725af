package ulp

import "fmt"

// Statuses of NFS that are no failures.
const (
	nfsNoEnt   = 2
	nfsExist   = 17
	nfsSame    = 10009
	nfsNotSame = 10027
)

// nfsStatuses are those of versions 3 and 4: RFC 1813, section 2.6, RFC 8881, section 15.1, RFC 7862, section 11, and
// RFC 8276.
var nfsStatuses = map[uint32]string{
	1: "PERM", nfsNoEnt: "NOENT", 5: "IO", 6: "NXIO", 13: "ACCESS", nfsExist: "EXIST", 18: "XDEV", 19: "NODEV", 20: "NOTDIR",
	21: "ISDIR", 22: "INVAL", 27: "FBIG", 28: "NOSPC", 30: "ROFS", 31: "MLINK", 63: "NAMETOOLONG", 66: "NOTEMPTY",
	69: "DQUOT", 70: "STALE", 71: "REMOTE", 10001: "BADHANDLE", 10002: "NOT_SYNC", 10003: "BAD_COOKIE", 10004: "NOTSUPP",
	10005: "TOOSMALL", 10006: "SERVERFAULT", 10007: "BADTYPE", 10008: "DELAY", nfsSame: "SAME", 10010: "DENIED",
	10011: "EXPIRED", 10012: "LOCKED", 10013: "GRACE", 10014: "FHEXPIRED", 10015: "SHARE_DENIED", 10016: "WRONGSEC",
	10017: "CLID_INUSE", 10018: "RESOURCE", 10019: "MOVED", 10020: "NOFILEHANDLE", 10021: "MINOR_VERS_MISMATCH",
	10022: "STALE_CLIENTID", 10023: "STALE_STATEID", 10024: "OLD_STATEID", 10025: "BAD_STATEID", 10026: "BAD_SEQID",
	nfsNotSame: "NOT_SAME", 10028: "LOCK_RANGE", 10029: "SYMLINK", 10030: "RESTOREFH", 10031: "LEASE_MOVED",
	10032: "ATTRNOTSUPP", 10033: "NO_GRACE", 10034: "RECLAIM_BAD", 10035: "RECLAIM_CONFLICT", 10036: "BADXDR",
	10037: "LOCKS_HELD", 10038: "OPENMODE", 10039: "BADOWNER", 10040: "BADCHAR", 10041: "BADNAME", 10042: "BAD_RANGE",
	10043: "LOCK_NOTSUPP", 10044: "OP_ILLEGAL", 10045: "DEADLOCK", 10046: "FILE_OPEN", 10047: "ADMIN_REVOKED",
	10048: "CB_PATH_DOWN", 10049: "BADIOMODE", 10050: "BADLAYOUT", 10051: "BAD_SESSION_DIGEST", 10052: "BADSESSION",
	10053: "BADSLOT", 10054: "COMPLETE_ALREADY", 10055: "CONN_NOT_BOUND_TO_SESSION", 10056: "DELEG_ALREADY_WANTED",
	10057: "BACK_CHAN_BUSY", 10058: "LAYOUTTRYLATER", 10059: "LAYOUTUNAVAILABLE", 10060: "NOMATCHING_LAYOUT",
	10061: "RECALLCONFLICT", 10062: "UNKNOWN_LAYOUTTYPE", 10063: "SEQ_MISORDERED", 10064: "SEQUENCE_POS",
	10065: "REQ_TOO_BIG", 10066: "REP_TOO_BIG", 10067: "REP_TOO_BIG_TO_CACHE", 10068: "RETRY_UNCACHED_REP",
	10069: "UNSAFE_COMPOUND", 10070: "TOO_MANY_OPS", 10071: "OP_NOT_IN_SESSION", 10072: "HASH_ALG_UNSUPP",
	10074: "CLIENTID_BUSY", 10075: "PNFS_IO_HOLE", 10076: "SEQ_FALSE_RETRY", 10077: "BAD_HIGH_SLOT", 10078: "DEADSESSION",
	10079: "ENCR_ALG_UNSUPP", 10080: "PNFS_NO_LAYOUT", 10081: "NOT_ONLY_OP", 10082: "WRONG_CRED", 10083: "WRONG_TYPE",
	10084: "DIRDELEG_UNAVAIL", 10085: "REJECT_DELEG", 10086: "RETURNCONFLICT", 10087: "DELEG_REVOKED",
	10088: "PARTNER_NOTSUPP", 10089: "PARTNER_NO_AUTH", 10090: "UNION_NOTSUPP", 10091: "OFFLOAD_DENIED", 10092: "WRONG_LFS",
	10093: "BADLABEL", 10094: "OFFLOAD_NO_REQS", 10095: "NOXATTR", 10096: "XATTR2BIG",
}

// ordinaryNFS are those that are part of what programs do, and no failures.
var ordinaryNFS = map[uint32]bool{nfsNoEnt: true, nfsExist: true, nfsSame: true, nfsNotSame: true}

var nfsAdvice = map[uint32]string{
	13:    "the server's export or the file's permissions do not let this user in",
	28:    "the server's file system is full",
	30:    "the server exports or mounts the file system read-only",
	69:    "the user has no more room on the server: see its quotas",
	70:    "the file or the export is gone from the server: mount it again",
	10008: "the server asks the client to try again later: look at the server's load, or at a delegation that it recalls",
	10013: "the server has started anew, and only takes claims of old locks until its grace period ends (90 s as a rule): wait, or look why it started anew",
	10016: "the export asks for another security flavor: see its sec= option",
	10022: "the server has forgotten the client: it has started anew, or the lease has expired",
	10052: "the server has forgotten the session: it has started anew, or the lease has expired",
}

func nfsStatus(status, version uint32) (name string, known bool) {
	name, known = nfsStatuses[status]
	switch {
	case version == 3 && status == 10008:
		name = "JUKEBOX"
	case version == 3 && status == 13:
		name = "ACCES"
	}
	return fmt.Sprintf("NFS%dERR_%s", version, name), known || status == 0
}
