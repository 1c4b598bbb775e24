package change

import (
	"testing"
	"time"
)

// What replace --force deletes is waited for five minutes, and with --wait as long as
// its finalizers take. No grace means the shortest, not a removal by force.
func TestReplaceDeletes(t *testing.T) {
	for _, c := range []struct {
		asked   *replaceOptions
		grace   int64
		timeout time.Duration
	}{
		{&replaceOptions{grace: -1}, -1, 5 * time.Minute},
		{&replaceOptions{grace: -1, wait: true}, -1, 0},
		{&replaceOptions{grace: 0}, 1, 0},
		{&replaceOptions{grace: 7}, 7, 5 * time.Minute},
		{&replaceOptions{grace: -1, timeout: time.Second, wait: true}, -1, time.Second},
	} {
		d := c.asked.deletion()
		if d.grace != c.grace || d.timeout != c.timeout || !d.wait {
			t.Errorf("grace %d, timeout %s, wait %t becomes grace %d, timeout %s, wait %t; want grace %d, timeout %s",
				c.asked.grace, c.asked.timeout, c.asked.wait, d.grace, d.timeout, d.wait, c.grace, c.timeout)
		}
	}
}
