package conform

// What the suite pings with.
var (
	PingText     = pingText
	SourceAdvert = sourceAdvert
)
