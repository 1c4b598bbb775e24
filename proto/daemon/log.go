package daemon

import (
	"cmp"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// LogOptions are the logging flags, named as upstream names them.
type LogOptions struct {
	Format    string // json, text, or "" for text on a terminal and json elsewhere
	Verbosity int    // 0: info and above; from 4: debug

	level zap.AtomicLevel // of the loggers made
}

// AddFlags adds the logging flags.
func (o *LogOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Format, "logging-format", o.Format, "log format: json or text (default: text on a terminal, else json)")
	fs.IntVarP(&o.Verbosity, "v", "v", o.Verbosity, "log verbosity, from 0 (important decisions) to 4 and above (every step)")
}

// debugVerbosity is the -v from which debug lines are written, as in upstream's
// habit of -v=4 for debugging.
const debugVerbosity = 4

// FormatUsed is the format in use, whether or not one was asked for.
func (o *LogOptions) FormatUsed() string {
	if o.Format == "" && isTerminal(os.Stderr) {
		return "text"
	}
	return cmp.Or(o.Format, "json")
}

// Logger builds the program's logger; it writes to standard error, and so does Go's standard log
// from then on, through it.
func (o *LogOptions) Logger() (*zap.Logger, error) {
	if o.Verbosity < 0 {
		return nil, fmt.Errorf("--v=%d: it can't be negative", o.Verbosity)
	}
	o.level = zap.NewAtomicLevelAt(zapLevel(o.Verbosity))
	format := o.FormatUsed()
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime = zapcore.TimeEncoderOfLayout(time.RFC3339Nano)
	config.TimeKey = "ts"
	var encoder zapcore.Encoder
	switch format {
	case "json":
		encoder = zapcore.NewJSONEncoder(config)
	case "text":
		config.EncodeLevel = zapcore.CapitalLevelEncoder
		config.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		encoder = zapcore.NewConsoleEncoder(config)
	default:
		return nil, fmt.Errorf("--logging-format=%s: only json and text are supported", format)
	}
	logger := zap.New(zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), o.level))
	// Libraries, as Go's HTTP proxy, write to Go's standard log if they are given none: these lines
	// have to be ones that a reader of the log understands, too.
	if _, err := zap.RedirectStdLogAt(logger.Named("library"), zapcore.WarnLevel); err != nil {
		return nil, err
	}
	return logger, nil
}

// SetVerbosity changes how much the most recently made logger writes; before
// there is one, it does nothing.
func (o *LogOptions) SetVerbosity(verbosity int) {
	if o.level != (zap.AtomicLevel{}) {
		o.level.SetLevel(zapLevel(verbosity))
	}
}

func zapLevel(verbosity int) zapcore.Level {
	if verbosity >= debugVerbosity {
		return zapcore.DebugLevel
	}
	return zapcore.InfoLevel
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// PodFields are the fields of every log line about a pod, under the same keys
// in all programs: pod (namespace/name) and uid.
func PodFields(pod metav1.Object) zap.Field {
	return PodKey(pod.GetNamespace(), pod.GetName(), pod.GetUID())
}

// PodKey are PodFields where there is no object to take them from.
func PodKey(namespace, name string, uid types.UID) zap.Field {
	return zap.Inline(podFields{namespace, name, uid})
}

type podFields struct {
	namespace, name string
	uid             types.UID
}

// MarshalLogObject implements zapcore.ObjectMarshaler.
func (p podFields) MarshalLogObject(line zapcore.ObjectEncoder) error {
	line.AddString("pod", p.namespace+"/"+p.name)
	line.AddString("uid", string(p.uid))
	return nil
}
