package matrix

// A sharedRow is a row of RFC 6581 that runs over MPA and over SCTP.
type sharedRow struct {
	name, section string
	ids           string // of the requirements
	i             Initiator
	r             Responder
	demanded      string // over both; and in addition
	mpa, sctp     string // over each
}

// overMPA returns shared as rows.
func overMPA(shared []sharedRow) (rows []Row) {
	for _, c := range shared {
		rows = append(rows, Row{Name: c.name, Requirement: "RFC 6581 " + c.section + " " + c.ids, Initiator: c.i, Responder: c.r, Demanded: c.demanded + c.mpa})
	}
	return rows
}

// overSCTP returns shared as rows that have further requirements, with either side free to send first.
func overSCTP(ids string, shared []sharedRow) (rows []Row) {
	for _, c := range shared {
		rows = append(rows, Row{Name: c.name, Requirement: "RFC 6581 7, " + c.section + " " + ids + c.ids, Initiator: c.i, Responder: c.r, Demanded: c.demanded + c.sctp})
	}
	return rows
}
