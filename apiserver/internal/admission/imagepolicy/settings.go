package imagepolicy

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"kctl/apiserver/internal/admission/configuration"
	"kctl/apiserver/internal/webhookclient"
)

// settings are the plugin's configuration.
type settings struct {
	ImagePolicy struct {
		KubeConfigFile string `json:"kubeConfigFile"`
		// In seconds: 0 is the default, -1 disables.
		AllowTTL int64 `json:"allowTTL"`
		DenyTTL  int64 `json:"denyTTL"`
		// In milliseconds: 0 is the default.
		RetryBackoff int64 `json:"retryBackoff"`
		DefaultAllow bool  `json:"defaultAllow"`
	} `json:"imagePolicy"`
}

// durationSetting are upstream's bounds of one setting.
type durationSetting struct {
	name                   string
	unit, fallback, lo, hi time.Duration
}

var (
	allowTTL     = durationSetting{"allowTTL", time.Second, 5 * time.Minute, time.Second, 30 * time.Minute}
	denyTTL      = durationSetting{"denyTTL", time.Second, 30 * time.Second, time.Second, 30 * time.Minute}
	retryBackoff = durationSetting{"retryBackoff", time.Millisecond, 500 * time.Millisecond, time.Millisecond, 5 * time.Minute}
)

var errNoConfiguration = errors.New("admission plugin " + Name + ": no configuration in --admission-control-config-file")

// New returns the plugin that files describe. onProblem hears of what is wrong with the credentials
// for its webhook later on.
func New(files configuration.Files, clock clock.Clock, onProblem func(error)) (*Plugin, error) {
	var s settings
	found, err := files.DecodeBare(Name, &s)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, errNoConfiguration
	}
	service, err := webhookclient.Load(s.ImagePolicy.KubeConfigFile, clock, onProblem)
	if err != nil {
		return nil, fmt.Errorf("admission plugin %s: %w", Name, err)
	}
	backoff, err := retryBackoff.parse(s.ImagePolicy.RetryBackoff)
	if err != nil {
		return nil, err
	}
	p := &Plugin{Service: service.RetryAfter(backoff), failOpen: s.ImagePolicy.DefaultAllow, answers: webhookclient.NewAnswers[answer](clock)}
	if p.allowTTL, err = allowTTL.parse(s.ImagePolicy.AllowTTL); err != nil {
		return nil, err
	}
	if p.denyTTL, err = denyTTL.parse(s.ImagePolicy.DenyTTL); err != nil {
		return nil, err
	}
	return p, nil
}

// parse returns the value of a setting.
func (b durationSetting) parse(value int64) (time.Duration, error) {
	switch duration := time.Duration(value) * b.unit; {
	case value == 0:
		return b.fallback, nil
	case value == -1 && b.name != retryBackoff.name:
		return 0, nil
	case value < 0 || value > int64(b.hi/b.unit) || duration < b.lo:
		return 0, fmt.Errorf("admission plugin %s: valid value is between %v and %v for %s, got %d", Name, b.lo, b.hi, b.name, value)
	default:
		return duration, nil
	}
}
