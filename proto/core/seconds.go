package core

import "time"

// maxSeconds is longer than anything runs, and far below what a time.Duration
// holds, so that deadlines can be computed from it.
const maxSeconds = 100 * 365 * 24 * 60 * 60

// Seconds returns n seconds, or a hundred years if they are more: the API allows
// numbers of seconds (terminationGracePeriodSeconds and the like) that overflow a
// time.Duration, which people write to say for ever.
func Seconds(n int64) time.Duration {
	return time.Duration(max(-maxSeconds, min(n, maxSeconds))) * time.Second
}
