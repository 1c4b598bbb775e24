package config

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	tracingv1 "k8s.io/component-base/tracing/api/v1"

	"kctl/apiserver/internal/configfile"
)

// tracingVersions are the versions of TracingConfiguration, which have the same form.
var tracingVersions = []string{"v1", "v1beta1", "v1alpha1"}

// Tracing is the content of --tracing-config-file; nil if there is none.
func (o *Operation) Tracing() (*tracingv1.TracingConfiguration, error) {
	if o.TracingConfigFile == "" {
		return nil, nil
	}
	content, err := configfile.Read(o.TracingConfigFile)
	if err != nil {
		return nil, fmt.Errorf("--tracing-config-file: %w", err)
	}
	var file struct {
		metav1.TypeMeta                `json:",inline"`
		tracingv1.TracingConfiguration `json:",inline"`
	}
	if err := configfile.DecodeNameless(content, "TracingConfiguration", tracingVersions, &file); err != nil {
		return nil, fmt.Errorf("--tracing-config-file %s: %w", o.TracingConfigFile, err)
	}
	if errs := tracingv1.ValidateTracingConfiguration(&file.TracingConfiguration, nil, nil); len(errs) > 0 {
		return nil, fmt.Errorf("--tracing-config-file %s: %w", o.TracingConfigFile, errs.ToAggregate())
	}
	return &file.TracingConfiguration, nil
}
