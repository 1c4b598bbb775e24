package daemon

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"kctl/proto/release"
)

// The paths at which a program describes itself.
const (
	FlagsPath  = "/flagz"
	StatusPath = "/statusz"
	ConfigPath = "/configz"
)

// Pages are what a program says about itself under upstream's names (Kubernetes
// docs, "z-pages"): its flags at /flagz, its state at /statusz, and its
// configuration at /configz. They are for authorized callers only; the program
// decides who these are.
type Pages struct {
	// Program is the name of the upstream twin: dashboards know programs by it.
	Program string
	Clock   clock.PassiveClock
	Started time.Time
	Flags   *pflag.FlagSet
	// Config is what /configz shows, by the name of the kind of configuration; nil
	// for a program that has no file of one.
	Config map[string]any
	// Paths are those of the program that /statusz names.
	Paths []string
}

// AddTo adds the paths to mux.
func (p *Pages) AddTo(mux *http.ServeMux) {
	mux.HandleFunc("GET "+FlagsPath, p.flags)
	mux.HandleFunc("GET "+StatusPath, p.status)
	if p.Config != nil {
		mux.HandleFunc("GET "+ConfigPath, func(w http.ResponseWriter, _ *http.Request) {
			writeAs(w, http.StatusOK, k8sruntime.ContentTypeJSON, p.Config)
		})
	}
}

// page is what both pages have in their structured forms.
type page struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name string `json:"name"`
	} `json:"metadata"`
}

type statusPage struct {
	page
	StartTime        metav1.Time `json:"startTime"`
	UptimeSeconds    int64       `json:"uptimeSeconds"`
	GoVersion        string      `json:"goVersion"`
	BinaryVersion    string      `json:"binaryVersion"`
	EmulationVersion string      `json:"emulationVersion,omitempty"`
	Paths            []string    `json:"paths,omitempty"`
}

type flagsPage struct {
	page
	Flags map[string]string `json:"flags"`
}

// newTextPage begins the plain form of a page.
func (p *Pages) newTextPage(kind string) *strings.Builder {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s %s\nWarning: this page is for people who look for a fault; programs ask for JSON or YAML instead.\n",
		p.Program, kind)
	return &b
}

func (p *Pages) flags(w http.ResponseWriter, r *http.Request) {
	text, of := p.newTextPage("flagz"), &flagsPage{Flags: map[string]string{}}
	p.Flags.VisitAll(func(f *pflag.Flag) {
		fmt.Fprintf(text, "%s: %s\n", f.Name, f.Value)
		of.Flags[f.Name] = f.Value.String()
	})
	p.write(w, r, "Flagz", text.String(), &of.page, of)
}

func (p *Pages) status(w http.ResponseWriter, r *http.Request) {
	version, up := Version(), p.Clock.Since(p.Started)
	of := &statusPage{
		StartTime: metav1.NewTime(p.Started.UTC()), UptimeSeconds: int64(up.Seconds()), GoVersion: runtime.Version(),
		BinaryVersion: strings.TrimPrefix(version.GitVersion, "v"), EmulationVersion: release.Kubernetes, Paths: p.Paths,
	}
	text := p.newTextPage("statusz")
	fmt.Fprintf(text,
		"\nStarted:  %s\nUp:  %d hr %02d min %02d sec\nGo version:  %s\nBinary version:  %s\nEmulation version:  %s\nPaths:  %s\n",
		p.Started.UTC().Format(time.UnixDate), int(up.Hours()), int(up.Minutes())%60, int(up.Seconds())%60,
		of.GoVersion, of.BinaryVersion, of.EmulationVersion, strings.Join(of.Paths, " "))
	p.write(w, r, "Statusz", text.String(), &of.page, of)
}

// pagesGroup is the API group of the structured forms.
const pagesGroup = "config.k8s.io"

// write answers in the form that the caller asks for: text, unless it names the
// kind and the version as the docs say.
func (p *Pages) write(w http.ResponseWriter, r *http.Request, kind, text string, head *page, whole any) {
	form, version := negotiate(r.Header.Get("Accept"), kind)
	switch form {
	case "":
		status := metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Message: "only the following media types are accepted: application/json, application/yaml, text/plain",
			Reason:  metav1.StatusReasonNotAcceptable, Code: http.StatusNotAcceptable,
		}
		writeAs(w, http.StatusNotAcceptable, k8sruntime.ContentTypeJSON, status)
	case "text/plain":
		writeText(w, http.StatusOK, text)
	default:
		head.APIVersion, head.Kind, head.Metadata.Name = pagesGroup+"/"+version, kind, p.Program
		w.Header().Set("Content-Type", fmt.Sprintf("%s;g=%s;v=%s;as=%s", form, pagesGroup, version, kind))
		if version != "v1beta1" {
			w.Header().Set("Warning", fmt.Sprintf("299 - %q", "v1beta1 is newer than this version of "+kind))
		}
		writeAs(w, http.StatusOK, form, whole)
	}
}

// negotiate returns the first form in an Accept header that is available, and,
// for a structured one, its version.
func negotiate(accept, kind string) (form, version string) {
	if accept == "" {
		return "text/plain", ""
	}
	for clause := range strings.SplitSeq(accept, ",") {
		form, params, err := mime.ParseMediaType(clause)
		if err != nil {
			continue
		}
		switch form {
		case "*/*", "text/*", "text/plain":
			return "text/plain", ""
		case k8sruntime.ContentTypeJSON, k8sruntime.ContentTypeYAML:
			version := params["v"]
			if params["g"] == pagesGroup && params["as"] == kind && (version == "v1beta1" || version == "v1alpha1") {
				return form, version
			}
		}
	}
	return "", ""
}

func writeAs(w http.ResponseWriter, code int, form string, value any) {
	data, err := json.MarshalIndent(value, "", "  ")
	if err == nil && form == k8sruntime.ContentTypeYAML {
		data, err = yaml.JSONToYAML(data)
	}
	if err != nil {
		writeText(w, http.StatusInternalServerError, err.Error()+"\n")
		return
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", form)
	}
	w.WriteHeader(code)
	_, _ = w.Write(data) // the caller may have gone
}
