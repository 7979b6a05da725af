package iwarp

import "github.com/goiwarp/iwarp/mpa"

// noNudge is for RNICs.
const noNudge = -1

const whyNoNudge = "an RNIC does not miss the first FPDU as siw may, and gets no Writes that nobody asked for"

// presetSIW is for Linux's siw, as measured with Linux 6.1.
func presetSIW() Preset {
	return Preset{
		Name: "siw", Peer: "Linux siw (software, kernel)",
		Initiate:   mpa.Offer{Dialect: mpa.DialectRFC6581, RTR: mpa.RTRWrite | mpa.RTRRead},
		Dialects:   []mpa.Dialect{mpa.DialectRFC6581},
		NoFallback: true, MaxPDLength: 256,
		Reasons: []Reason{
			{"Initiate.Dialect", "siw takes revision 1 too, but then no IRD and ORD are exchanged, and servers such as rping's fail to post their Reads"},
			{"Initiate.RTR", "siw answers Write if that is offered, else Read, and Write even where neither is: a Send alone ends in a Terminate"},
			{"Initiate.Markers", "siw has no markers: a Request with M=1 is answered by a reject"},
			{"Accept.Markers", "siw has no markers: behind a Reply with M=1 it closes the connection"},
			{"Initiate.ClientServer", "either does; with A=0 siw may send before our first FPDU"},
			{"Dialects", "siw starts with revision 2 only; and it echoes reserved bits, so that its S=1 in revision 1 does not mean an Rtr frame"},
			{"NoFallback", "siw takes revision 2: where it closes the connection, or resets it, that has another cause"},
			{"Nudge", "the default: siw may miss the first FPDU when it comes soon behind its Reply"},
			{"MaxPDLength", "a PD_Length over 256 is answered by a RST, and in a Reply crashes siw as Initiator: with revision 2 that leaves 252 octets"},
		},
	}
}

// presetCXGB4 is for Chelsio's RNICs under Linux, by the driver's source.
func presetCXGB4() Preset {
	return Preset{
		Name: "cxgb4", Peer: "Chelsio T4 to T6 (Linux iw_cxgb4)",
		Initiate: mpa.Offer{Dialect: mpa.DialectRFC6581, RTR: mpa.RTRRead, IRD: 32, ORD: 32},
		Accept:   mpa.Offer{IRD: 32, ORD: 32},
		Dialects: []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044},
		Nudge:    noNudge, MaxPDLength: 256,
		Reasons: []Reason{
			{"Initiate.Dialect", "its default; if it is set to revision 1 it resets the connection, and the Dialer tries that"},
			{"Initiate.RTR", "it answers with Read whatever was offered: an offer without Read ends in a Terminate. It refuses STag 0 in an RTR indication: 1 is what this package sends"},
			{"Initiate.IRD", "its own maximum, as revision 1 does not negotiate"},
			{"Initiate.ORD", "its own maximum, as revision 1 does not negotiate"},
			{"Accept.IRD", "its own maximum, as revision 1 does not negotiate"},
			{"Accept.ORD", "its own maximum, as revision 1 does not negotiate"},
			{"Dialects", "revision 2, or 1 by a parameter: then it opens a peer-to-peer connection by a zero-length Read that nobody has negotiated, which is answered whatever our IRD"},
			{"Nudge", whyNoNudge},
			{"MaxPDLength", "it resets a connection whose PD_Length is over 256"},
		},
	}
}

// presetFreeBSD is for Chelsio's RNICs under FreeBSD, by the driver's source.
func presetFreeBSD() Preset {
	return Preset{
		Name: "freebsd", Peer: "Chelsio T4 to T6 (FreeBSD iw_cxgbe)",
		Initiate: mpa.Offer{Dialect: mpa.DialectRFC5044, IRD: 8, ORD: 8},
		Accept:   mpa.Offer{IRD: 8, ORD: 8},
		Dialects: []mpa.Dialect{mpa.DialectRFC5044, mpa.DialectRFC6581},
		Nudge:    noNudge, MaxPDLength: 256,
		Reasons: []Reason{
			{"Initiate.Dialect", "it runs with revision 1 and resets a connection of a higher one, which costs a second connection"},
			{"Initiate.IRD", "its own maximum, as revision 1 does not negotiate"},
			{"Initiate.ORD", "revision 1 does not negotiate, and more than its 8 inbound Reads end the connection"},
			{"Accept.IRD", "its own maximum, as revision 1 does not negotiate"},
			{"Accept.ORD", "revision 1 does not negotiate, and more than its 8 inbound Reads end the connection"},
			{"Dialects", "revision 1, or 2 by a tunable"},
			{"Nudge", whyNoNudge},
			{"MaxPDLength", "it resets a connection whose PD_Length is over 256"},
		},
	}
}

// presetIRDMA is for Intel's RNICs, by the driver's source.
func presetIRDMA() Preset {
	return Preset{
		Name: "irdma", Peer: "Intel X722, E810 (Linux irdma, i40iw)",
		Initiate: mpa.Offer{Dialect: mpa.DialectRFC6581, RTR: mpa.RTRWrite | mpa.RTRRead},
		Accept:   mpa.Offer{RTR: mpa.RTRWrite | mpa.RTRRead},
		Dialects: []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044},
		Nudge:    noNudge, MaxPDLength: mpa.MaxPrivateData,
		Reasons: []Reason{
			{"Initiate.Dialect", "its default; if it is set to revision 1 it resets the connection, and the Dialer tries that"},
			{"Initiate.ClientServer", "it resets a revision 2 connection whose Request or Reply has A=0: leave it false"},
			{"Initiate.RTR", "it answers Read if that is offered, else Write, and has no Send"},
			{"Accept.RTR", "it offers Write and Read, and takes Read where it may; a Reply that names Read with IRD 0 is an error to it: there, ours is at least 1"},
			{"Dialects", "revision 2, or 1 by a parameter"},
			{"Nudge", whyNoNudge},
			{"MaxPDLength", "it wants the whole frame in one TCP segment: the longest, 532 octets, fits the smallest, and leaves in one write"},
		},
	}
}

// presetQEDR is for Marvell's RNICs, by the driver's source; the startup is done by
// firmware, which is not to be seen.
func presetQEDR() Preset {
	return Preset{
		Name: "qedr", Peer: "Marvell FastLinQ 41000, 45000 (Linux qedr)",
		Initiate: mpa.Offer{Dialect: mpa.DialectRFC6581, RTR: mpa.RTRWrite | mpa.RTRRead, IRD: 32, ORD: 32},
		Accept:   mpa.Offer{IRD: 32, ORD: 32},
		Dialects: []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044},
		Nudge:    noNudge,
		Reasons: []Reason{
			{"Initiate.Dialect", "its default"},
			{"Initiate.RTR", "it may name several kinds, and where none is common to both all that it has: the first that both know is sent, and no Send, which shows on a queue"},
			{"Initiate.IRD", "its own maximum, as revision 1 does not negotiate"},
			{"Initiate.ORD", "its own maximum, as revision 1 does not negotiate"},
			{"Accept.IRD", "its own maximum, as revision 1 does not negotiate"},
			{"Accept.ORD", "its own maximum, as revision 1 does not negotiate"},
			{"Dialects", "revision 2; 1 is possible"},
			{"Nudge", whyNoNudge},
		},
	}
}

// presetWindows is for SMB Direct over RNICs of revision 1 under Windows, by MS-SMBD
// and by what siw had to be set to for a Chelsio T404-BT there.
func presetWindows() Preset {
	return Preset{
		Name: "windows-v1", Peer: "Windows SMB Direct over an RNIC of MPA revision 1 (Chelsio T404-BT)",
		Initiate: mpa.Offer{Dialect: mpa.DialectRFC5044},
		Dialects: []mpa.Dialect{mpa.DialectRFC5044},
		Nudge:    noNudge, MaxPDLength: 256, SMBDirect: true,
		Reasons: []Reason{
			{"Initiate.Dialect", "the RNIC has no other"},
			{"Initiate.NoCRC", "it requires CRCs: leave it false. (As Initiator it asks for them, which settles it.)"},
			{"Dialects", "the RNIC has no other"},
			{"Nudge", whyNoNudge},
			{"MaxPDLength", "the RNIC is Chelsio's, which reset a connection whose PD_Length is over 256: 248 octets behind the depths"},
			{"SMBDirect", "MS-SMBD, section 6.1: in revision 1 the depths, above 0, stand at the head of the private data"},
		},
	}
}
