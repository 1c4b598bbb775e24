package batch

import (
	"fmt"
	"strconv"
	"strings"
)

// interval is the range of indexes from first to last.
type interval struct{ first, last int32 }

// parseIndexes parses intervals like "1,3-5", which have to be in order and
// below completions.
func parseIndexes(text string, completions int32) ([]interval, error) {
	if text == "" {
		return nil, nil
	}
	var out []interval
	previous := int32(-1)
	next := func(text string) error {
		n, err := strconv.ParseInt(text, 10, 32)
		switch current := int32(n); {
		case err != nil:
			return fmt.Errorf("cannot convert string to integer for index: %q", text)
		case current >= completions:
			return fmt.Errorf("too large index: %q", text)
		case current <= previous:
			return fmt.Errorf("non-increasing order, previous: %d, current: %d", previous, current)
		default:
			previous = current
			return nil
		}
	}
	for part := range strings.SplitSeq(text, ",") {
		first, last, several := strings.Cut(part, "-")
		if err := next(first); err != nil {
			return nil, err
		}
		one := interval{previous, previous}
		if several {
			if err := next(last); err != nil {
				return nil, err
			}
			one.last = previous
		}
		out = append(out, one)
	}
	return out, nil
}

// overlap is the first index in both.
func overlap(a, b []interval) (int32, bool) {
	for len(a) > 0 && len(b) > 0 {
		if first := max(a[0].first, b[0].first); first <= min(a[0].last, b[0].last) {
			return first, true
		}
		if a[0].last < b[0].last {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return 0, false
}
