package status

import "strings"

// maxText is more than people read of one message.
const maxText = 16 << 10

// Shorten leaves the beginning and the end of a text that others wrote, such as webhooks and
// issuers: a message goes to clients, into the log and the audit log, and often into the status
// of objects.
func Shorten(text string) string {
	if len(text) <= maxText {
		return text
	}
	const half, cut = maxText / 2, " … "
	return strings.ToValidUTF8(text[:half-len(cut)]+cut+text[len(text)-half:], "\uFFFD")
}
