package podactions

// ProbeResult is the last result of a probe.
type ProbeResult int

const (
	ProbeUnknown ProbeResult = iota // not asked yet, or there is no such probe
	ProbeSuccess
	ProbeFailure // the failure threshold is reached
)

// ProbeResults are those that decide about a container's life.
type ProbeResults struct {
	Liveness ProbeResult
	Startup  ProbeResult
}
