package generate

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// AutoscalerOptions are the options of an autoscaler: the minimum (0: left to
// the server) and maximum number of pods, and the target use of a resource, as a
// percentage of the request or as an amount.
type AutoscalerOptions struct {
	Low, High   int32
	CPU, Memory string
}

// Autoscaler makes a horizontal pod autoscaler for an object that has replicas.
func Autoscaler(name string, of *unstructured.Unstructured, o AutoscalerOptions) (*unstructured.Unstructured, error) {
	spec := fields{
		"maxReplicas":    int64(o.High),
		"scaleTargetRef": fields{"apiVersion": of.GetAPIVersion(), "kind": of.GetKind(), "name": of.GetName()},
	}
	if o.Low > 0 {
		spec["minReplicas"] = int64(o.Low)
	}
	var metrics []any
	for _, each := range []struct{ name, text, unit string }{{"cpu", o.CPU, "m"}, {"memory", o.Memory, "Mi"}} {
		if each.text == "" {
			continue
		}
		target, err := metricTarget(each.name, each.text, each.unit)
		if err != nil {
			return nil, err
		}
		metrics = append(metrics, fields{"type": "Resource", "resource": fields{"name": each.name, "target": target}})
	}
	if len(metrics) > 0 {
		spec["metrics"] = metrics
	}
	return object("autoscaling/v2", "HorizontalPodAutoscaler", name, fields{
		"spec": spec, "status": fields{"currentMetrics": nil, "desiredReplicas": int64(0)},
	}), nil
}

// metricTarget reads 80%, or an amount, for which a bare number is of the unit.
func metricTarget(name, text, unit string) (fields, error) {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		number, err := strconv.ParseInt(percent, 10, 32)
		if err != nil || number < 1 {
			return nil, fmt.Errorf("invalid resource %s value: %s", name, text)
		}
		return fields{"type": "Utilization", "averageUtilization": number}, nil
	}
	if _, err := strconv.Atoi(text); err == nil {
		text += unit
	}
	amount, err := resource.ParseQuantity(text)
	if err != nil || amount.Sign() <= 0 {
		return nil, fmt.Errorf("invalid resource %s value: %s", name, text)
	}
	return fields{"type": "AverageValue", "averageValue": amount.String()}, nil
}
