package daemon

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"

	"go.uber.org/zap"
)

// The paths at which operators look into a running program and change it. They
// are for authorized callers only; the program decides who these are.
const (
	DebugPath  = "/debug/"
	pprofPath  = DebugPath + "pprof/"
	flagsPath  = DebugPath + "flags"
	levelPath  = flagsPath + "/v"
	maxFlagLen = 64 // of a flag's new value
)

// Debug serves the Go runtime's profiles below /debug/pprof/, as upstream's
// --profiling does, and changes the log verbosity on PUT /debug/flags/v. It does
// not authenticate its callers.
func Debug(log *LogOptions, logger *zap.Logger) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc(pprofPath, pprof.Index)
	mux.HandleFunc(pprofPath+"cmdline", pprof.Cmdline)
	mux.HandleFunc(pprofPath+"profile", pprof.Profile)
	mux.HandleFunc(pprofPath+"symbol", pprof.Symbol)
	mux.HandleFunc(pprofPath+"trace", pprof.Trace)
	mux.HandleFunc("GET "+flagsPath, func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "handlers:\nv\n") })
	mux.HandleFunc("PUT "+levelPath, func(w http.ResponseWriter, r *http.Request) {
		verbosity, err := readVerbosity(r.Body)
		if err != nil {
			writeText(w, http.StatusBadRequest, err.Error()+"\n")
			return
		}
		log.SetVerbosity(verbosity)
		logger.Info("log verbosity changed", zap.Int("v", verbosity))
		writeText(w, http.StatusOK, fmt.Sprintf("successfully set klog.logging.verbosity to %d", verbosity))
	})
	return mux
}

func writeText(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text) // the caller may have gone
}

var errNoVerbosity = errors.New("the body must be a number: the log verbosity")

func readVerbosity(body io.Reader) (int, error) {
	text, err := io.ReadAll(io.LimitReader(body, maxFlagLen))
	if err != nil {
		return 0, fmt.Errorf("read the log verbosity: %w", err)
	}
	verbosity, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 32)
	if err != nil || verbosity < 0 {
		return 0, errNoVerbosity
	}
	return int(verbosity), nil
}
