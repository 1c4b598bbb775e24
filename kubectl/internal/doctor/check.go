package doctor

import "fmt"

// Result is how something is.
type Result string

// The results.
const (
	OK   Result = "OK"
	Warn Result = "WARN" // works, but not well, or not for long
	Fail Result = "FAIL"
)

// Check is something that was checked.
type Check struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	Detail string `json:"detail"`
	// Advice is what to do about it.
	Advice string `json:"advice,omitempty"`
}

func ok(name, format string, args ...any) Check {
	return Check{Name: name, Result: OK, Detail: fmt.Sprintf(format, args...)}
}

func warn(name, advice, format string, args ...any) Check {
	return Check{name, Warn, fmt.Sprintf(format, args...), advice}
}

func fail(name, advice, format string, args ...any) Check {
	return Check{name, Fail, fmt.Sprintf(format, args...), advice}
}
