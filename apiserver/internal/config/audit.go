package config

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"kctl/apiserver/internal/audit"
)

// Audit are the flags of auditing.
type Audit struct {
	PolicyFile string

	Log     audit.LogOptions
	LogSink audit.SinkOptions
	// LogVersion and WebhookVersion are versions of events; there is only one.
	LogVersion, WebhookVersion string

	WebhookConfigFile     string
	WebhookInitialBackoff time.Duration
	WebhookSink           audit.SinkOptions
}

const auditVersion = "audit.k8s.io/v1"

func auditDefaults() Audit {
	truncate := audit.TruncateOptions{MaxBatchSize: 10 << 20, MaxEventSize: 100 << 10}
	return Audit{
		Log:        audit.LogOptions{Format: audit.FormatJSON},
		LogVersion: auditVersion, WebhookVersion: auditVersion,
		LogSink: audit.SinkOptions{Mode: audit.ModeBlocking, Truncate: truncate, Batch: audit.BatchOptions{BufferSize: 10000, MaxSize: 1}},
		WebhookSink: audit.SinkOptions{Mode: audit.ModeBatch, Truncate: truncate, Batch: audit.BatchOptions{
			BufferSize: 10000, MaxSize: 400, MaxWait: 30 * time.Second, ThrottleEnable: true, ThrottleQPS: 10, ThrottleBurst: 15,
		}},
		WebhookInitialBackoff: 10 * time.Second,
	}
}

func (a *Audit) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&a.PolicyFile, "audit-policy-file", a.PolicyFile,
		"file with an audit policy: what is recorded of which requests; if not set, nothing is audited")
	fs.StringVar(&a.Log.Path, "audit-log-path", a.Log.Path, "file to write audit events to; - for standard output")
	fs.StringVar(&a.Log.Format, "audit-log-format", a.Log.Format, "json (one event per line) or legacy (one line of text per event)")
	fs.StringVar(&a.LogVersion, "audit-log-version", a.LogVersion, "API version of the events in the log")
	fs.IntVar(&a.Log.MaxAge, "audit-log-maxage", a.Log.MaxAge, "days to keep old audit log files, 0 for no limit")
	fs.IntVar(&a.Log.MaxBackups, "audit-log-maxbackup", a.Log.MaxBackups, "number of old audit log files to keep, 0 for all")
	fs.IntVar(&a.Log.MaxSizeMB, "audit-log-maxsize", a.Log.MaxSizeMB, "size in megabytes at which the audit log is rotated (0 for 100)")
	fs.BoolVar(&a.Log.Compress, "audit-log-compress", a.Log.Compress, "compress rotated log files with gzip")
	addSink(fs, "audit-log", &a.LogSink)
	fs.StringVar(&a.WebhookConfigFile, "audit-webhook-config-file", a.WebhookConfigFile, "kubeconfig of the server that receives audit events")
	fs.StringVar(&a.WebhookVersion, "audit-webhook-version", a.WebhookVersion, "API version of the events sent")
	fs.DurationVar(&a.WebhookInitialBackoff, "audit-webhook-initial-backoff", a.WebhookInitialBackoff,
		"delay before the first retry of a failed delivery")
	addSink(fs, "audit-webhook", &a.WebhookSink)
}

func addSink(fs *pflag.FlagSet, name string, s *audit.SinkOptions) {
	b, t := &s.Batch, &s.Truncate
	fs.StringVar(&s.Mode, name+"-mode", s.Mode,
		"batch (requests don't wait for their events to be written), blocking (they wait) or blocking-strict (they wait, and fail "+
			"if the first event is lost)")
	fs.IntVar(&b.BufferSize, name+"-batch-buffer-size", b.BufferSize, "maximum number of events waiting to be written (mode batch)")
	fs.IntVar(&b.MaxSize, name+"-batch-max-size", b.MaxSize, "maximum number of events per batch (mode batch)")
	fs.DurationVar(&b.MaxWait, name+"-batch-max-wait", b.MaxWait, "maximum time to wait for a batch to fill (mode batch)")
	fs.BoolVar(&b.ThrottleEnable, name+"-batch-throttle-enable", b.ThrottleEnable, "limit the number of batches per second (mode batch)")
	fs.Float32Var(&b.ThrottleQPS, name+"-batch-throttle-qps", b.ThrottleQPS, "maximum number of batches per second (mode batch)")
	fs.IntVar(&b.ThrottleBurst, name+"-batch-throttle-burst", b.ThrottleBurst, "maximum burst of batches after a pause (mode batch)")
	fs.BoolVar(&t.Enabled, name+"-truncate-enabled", t.Enabled, "truncate events and split batches that are too large")
	fs.Int64Var(&t.MaxBatchSize, name+"-truncate-max-batch-size", t.MaxBatchSize, "maximum size of a batch in bytes")
	fs.Int64Var(&t.MaxEventSize, name+"-truncate-max-event-size", t.MaxEventSize,
		"maximum size of an event in bytes; request and response objects are removed from larger ones")
}

func (a *Audit) validate() error {
	var errs []error
	if a.PolicyFile == "" && (a.Log.Path != "" || a.WebhookConfigFile != "") {
		errs = append(errs, errors.New("--audit-policy-file: required by --audit-log-path and --audit-webhook-config-file"))
	}
	errs = append(errs, known("--audit-log-format", []string{a.Log.Format}, []string{audit.FormatJSON, audit.FormatLegacy}))
	if a.Log.MaxAge < 0 || a.Log.MaxBackups < 0 || a.Log.MaxSizeMB < 0 {
		errs = append(errs, errors.New("--audit-log-maxage, --audit-log-maxbackup, --audit-log-maxsize: must not be negative"))
	}
	for name, sink := range map[string]struct {
		version string
		o       audit.SinkOptions
	}{"--audit-log": {a.LogVersion, a.LogSink}, "--audit-webhook": {a.WebhookVersion, a.WebhookSink}} {
		if sink.version != auditVersion {
			errs = append(errs, fmt.Errorf("%s-version=%s: only %s is supported", name, sink.version, auditVersion))
		}
		errs = append(errs, validateSink(name, sink.o))
	}
	return errors.Join(errs...)
}

func validateSink(name string, s audit.SinkOptions) error {
	var errs []error
	if modes := []string{audit.ModeBatch, audit.ModeBlocking, audit.ModeBlockingStrict}; !slices.Contains(modes, s.Mode) {
		errs = append(errs, fmt.Errorf("%s-mode=%s: unknown; known are %v", name, s.Mode, modes))
	}
	if b := s.Batch; s.Mode == audit.ModeBatch {
		if b.BufferSize < 1 || b.MaxSize < 1 || b.MaxSize > b.BufferSize {
			errs = append(errs, fmt.Errorf("%s-batch-max-size=%d: must be between 1 and %s-batch-buffer-size=%d",
				name, b.MaxSize, name, b.BufferSize))
		}
		if b.MaxWait < 0 || b.ThrottleEnable && (b.ThrottleQPS <= 0 || b.ThrottleBurst < 1) {
			errs = append(errs, fmt.Errorf("%s-batch-max-wait, %s-batch-throttle-qps, %s-batch-throttle-burst: must be positive", name, name, name))
		}
	}
	if t := s.Truncate; t.Enabled && (t.MaxEventSize < 1 || t.MaxBatchSize < t.MaxEventSize) {
		errs = append(errs, fmt.Errorf("%s-truncate-max-event-size=%d: must be between 1 and %s-truncate-max-batch-size=%d",
			name, t.MaxEventSize, name, t.MaxBatchSize))
	}
	return errors.Join(errs...)
}
