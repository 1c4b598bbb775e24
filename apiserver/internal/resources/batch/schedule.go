package batch

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// cronField is one of the five fields of a schedule.
type cronField struct {
	low, high int
	names     string // of the values starting at low, three letters each
}

var cronFields = []cronField{
	{0, 59, ""}, {0, 23, ""}, {1, 31, ""}, {1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"}, {0, 6, "sunmontuewedthufrisat"},
}

var descriptors = map[string]bool{
	"@yearly": true, "@annually": true, "@monthly": true, "@weekly": true, "@daily": true, "@midnight": true, "@hourly": true,
}

// checkSchedule returns what is wrong with a cron schedule, or "".
func checkSchedule(schedule string) string {
	if strings.HasPrefix(schedule, "TZ=") || strings.HasPrefix(schedule, "CRON_TZ=") {
		zone, rest, found := strings.Cut(schedule, " ")
		_, name, _ := strings.Cut(zone, "=")
		if _, err := time.LoadLocation(name); err != nil || !found {
			return fmt.Sprintf("provided bad location %s: %v", name, err)
		}
		schedule = strings.TrimSpace(rest)
	}
	if strings.HasPrefix(schedule, "@") {
		if every, ok := strings.CutPrefix(schedule, "@every "); ok {
			if _, err := time.ParseDuration(every); err != nil {
				return fmt.Sprintf("failed to parse duration %s: %v", schedule, err)
			}
			return ""
		}
		if !descriptors[schedule] {
			return "unrecognized descriptor: " + schedule
		}
		return ""
	}
	parts := strings.Fields(schedule)
	if len(parts) != len(cronFields) {
		return fmt.Sprintf("expected exactly %d fields, found %d: %s", len(cronFields), len(parts), parts)
	}
	for i, part := range parts {
		for item := range strings.SplitSeq(part, ",") {
			if problem := cronFields[i].check(item); problem != "" {
				return problem
			}
		}
	}
	return ""
}

// check returns what is wrong with one item of a field: a value, a range or a
// star, with an optional step.
func (p cronField) check(item string) string {
	values, step, stepped := strings.Cut(item, "/")
	if strings.Count(item, "/") > 1 {
		return "too many slashes: " + item
	}
	from, to, ranged := strings.Cut(values, "-")
	if strings.Count(values, "-") > 1 {
		return "too many hyphens: " + item
	}
	low, high := p.low, p.high
	if from != "*" && from != "?" {
		var problem string
		if low, problem = p.value(from); problem != "" {
			return problem
		}
		if high = low; ranged {
			if high, problem = p.value(to); problem != "" {
				return problem
			}
		} else if stepped {
			high = p.high
		}
	}
	switch {
	case low < p.low:
		return fmt.Sprintf("beginning of range (%d) below minimum (%d): %s", low, p.low, item)
	case high > p.high:
		return fmt.Sprintf("end of range (%d) above maximum (%d): %s", high, p.high, item)
	case low > high:
		return fmt.Sprintf("beginning of range (%d) beyond end of range (%d): %s", low, high, item)
	}
	if !stepped {
		return ""
	}
	if n, problem := number(step); problem != "" {
		return problem
	} else if n == 0 {
		return "step of range should be a positive number: " + item
	}
	return ""
}

func (p cronField) value(text string) (int, string) {
	if i := strings.Index(p.names, strings.ToLower(text)); len(text) == 3 && i >= 0 && i%3 == 0 {
		return p.low + i/3, ""
	}
	return number(text)
}

func number(text string) (int, string) {
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return 0, fmt.Sprintf("failed to parse int from %s: %v", text, err)
	case n < 0:
		return 0, fmt.Sprintf("negative number (%d) not allowed: %s", n, text)
	}
	return n, ""
}
