package extender

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/rest"
)

// Name stands for all extenders in place of a plugin's name: in refusals, and
// in what wakes a pod (everything does).
const Name = "Extender"

const (
	defaultTimeout = 5 * time.Second
	// maxNames bounds an answer, in bytes, that names nodes. One that has to contain the
	// nodes or victims that it was asked about may be some times as long as the question,
	// because it may be written in another way, up to maxAnswer.
	maxNames  = 16 << 20
	maxAnswer = 256 << 20
	rewritten = 4
	// maxWeight and maxScore keep the sum of scores within its range. Scores are meant to
	// be from 0 to 10; that is not enforced, as in kube-scheduler.
	maxWeight = 1_000_000
	maxScore  = 1_000_000_000
)

// Extender is one service.
type Extender struct {
	configv1.Extender
	client   *http.Client
	maxNames int64 // the constant, except in tests
}

// newExtender checks a configuration and returns its extender. It does not connect.
func newExtender(config configv1.Extender, logger *zap.Logger) (*Extender, error) {
	if err := validate(&config); err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if t := config.TLSConfig; t != nil {
		security := rest.Config{
			Host: config.URLPrefix, Insecure: t.Insecure, ServerName: t.ServerName, CertFile: t.CertFile, KeyFile: t.KeyFile, CAFile: t.CAFile,
			CertData: t.CertData, KeyData: t.KeyData, CAData: t.CAData, OnFileProblem: daemon.LogFileProblems(logger),
		}
		var err error
		if transport.TLSClientConfig, err = security.TLS(); err != nil {
			return nil, fmt.Errorf("tlsConfig: %w", err)
		}
	}
	timeout := config.HTTPTimeout.Duration
	if timeout == 0 {
		timeout = defaultTimeout
	}
	e := &Extender{Extender: config, client: &http.Client{Transport: transport, Timeout: timeout, CheckRedirect: stay}, maxNames: maxNames}
	return e, nil
}

// validate checks all but tlsConfig.
func validate(config *configv1.Extender) error {
	prefix, err := url.Parse(config.URLPrefix)
	switch {
	case err != nil || prefix.Host == "" || prefix.Scheme != "http" && prefix.Scheme != "https":
		return invalid("urlPrefix", config.URLPrefix, "is no URL of http or https")
	case config.PrioritizeVerb != "" && config.Weight < 1:
		return invalid("weight", config.Weight, "must have a positive weight applied to it")
	case config.Weight > maxWeight:
		return invalid("weight", config.Weight, fmt.Sprintf("is more than %d", maxWeight))
	case config.HTTPTimeout.Duration < 0:
		return invalid("httpTimeout", config.HTTPTimeout.Duration.String(), "must be non-negative")
	case config.EnableHTTPS && prefix.Scheme != "https":
		return invalid("enableHTTPS", true, fmt.Sprintf("urlPrefix %q is not of https", config.URLPrefix))
	}
	seen := map[string]bool{}
	for i, r := range config.ManagedResources {
		name := fmt.Sprintf("managedResources[%d].name", i)
		switch {
		case !strings.Contains(r.Name, "/"):
			return invalid(name, r.Name, "is an invalid extended resource name")
		case seen[r.Name]:
			return invalid(name, r.Name, "duplicate extender managed resource name")
		}
		seen[r.Name] = true
	}
	return nil
}

// invalid is an error in the form of kube-scheduler's.
func invalid(name string, value any, why string) error {
	return field.Invalid(field.NewPath(name), value, why)
}

// stay refuses redirects: requests contain pods and nodes, which may go only to
// the configured extender.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// interested reports whether the pod is one that the extender is asked about.
func (e *Extender) interested(pod *core.Pod) bool {
	if len(e.ManagedResources) == 0 {
		return true
	}
	for c := range core.Containers(&pod.Spec) {
		if e.manages(c.Resources.Requests) || e.manages(c.Resources.Limits) {
			return true
		}
	}
	return false
}

func (e *Extender) manages(list corev1.ResourceList) bool {
	for _, r := range e.ManagedResources {
		if _, asked := list[corev1.ResourceName(r.Name)]; asked {
			return true
		}
	}
	return false
}

// ask posts a question in JSON and decodes the answer. Its length is bounded, because
// decoding takes several times as much memory.
func (e *Extender) ask(ctx context.Context, verb string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("extender %s: %w", e.URLPrefix, err)
	}
	address := strings.TrimRight(e.URLPrefix, "/") + "/" + verb
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("extender %s: %w", e.URLPrefix, err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := e.client.Do(request)
	if err != nil {
		return fmt.Errorf("extender: %w", err) // it names the address
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("extender at %s answered %s", address, response.Status)
	}
	limited := &io.LimitedReader{R: response.Body, N: e.longest(answer, len(body))}
	if err := json.NewDecoder(limited).Decode(answer); err != nil {
		if limited.N <= 0 {
			err = errors.New("the answer is too long")
		}
		return fmt.Errorf("extender at %s: %w", address, err)
	}
	return nil
}

// longest is how many bytes an answer to a question of that length may have.
func (e *Extender) longest(answer any, question int) int64 {
	if _, names := answer.(*extenderv1.HostPriorityList); names {
		return e.maxNames
	}
	return max(e.maxNames, min(rewritten*int64(question), maxAnswer))
}
