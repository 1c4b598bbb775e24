package rollout

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// revisionAnnotation is where the deployment controller counts revisions.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// integerReader reads the integers of an object's status and spec.
type integerReader struct{ object map[string]any }

func (n integerReader) at(path ...string) int64 {
	value, found, err := unstructured.NestedFieldNoCopy(n.object, path...)
	if !found || err != nil {
		return 0
	}
	switch v := value.(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	}
	return 0
}

func (n integerReader) or(otherwise int64, path ...string) int64 {
	if _, found, err := unstructured.NestedFieldNoCopy(n.object, path...); !found || err != nil {
		return otherwise
	}
	return n.at(path...)
}

// Status says in a line how far a rollout is, and whether it is done.
func Status(object *unstructured.Unstructured, revision int64) (string, bool, error) {
	n := integerReader{object.Object}
	observed := object.GetGeneration() <= n.at("status", "observedGeneration")
	switch object.GetKind() {
	case "Deployment":
		return deploymentStatus(object, n, observed, revision)
	case "DaemonSet":
		return daemonSetStatus(object, n, observed)
	case "StatefulSet":
		return statefulSetStatus(object, n, observed)
	}
	return "", false, fmt.Errorf("no status viewer has been implemented for %s", object.GetKind())
}

func deploymentStatus(object *unstructured.Unstructured, n integerReader, observed bool, revision int64) (string, bool, error) {
	name := object.GetName()
	if revision > 0 {
		// Until the controller has seen a deployment, its revision is 0.
		have, err := strconv.ParseInt(cmp.Or(object.GetAnnotations()[revisionAnnotation], "0"), 10, 64)
		if err != nil {
			return "", false, fmt.Errorf("cannot get the revision of deployment %q: %w", name, err)
		}
		if have != revision {
			return "", false, fmt.Errorf("desired revision (%d) is different from the running revision (%d)", revision, have)
		}
	}
	if !observed {
		return "Waiting for deployment spec update to be observed...\n", false, nil
	}
	if deadlineExceeded(object) {
		return "", false, fmt.Errorf("deployment %q exceeded its progress deadline", name)
	}
	wanted := n.or(1, "spec", "replicas")
	all, updated, available := n.at("status", "replicas"), n.at("status", "updatedReplicas"), n.at("status", "availableReplicas")
	waiting := fmt.Sprintf("Waiting for deployment %q rollout to finish: ", name)
	switch {
	case updated < wanted:
		return waiting + fmt.Sprintf("%d out of %d new replicas have been updated...\n", updated, wanted), false, nil
	case all > updated:
		return waiting + fmt.Sprintf("%d old replicas are pending termination...\n", all-updated), false, nil
	case available < updated:
		return waiting + fmt.Sprintf("%d of %d updated replicas are available...\n", available, updated), false, nil
	}
	return fmt.Sprintf("deployment %q successfully rolled out\n", name), true, nil
}

// deadlineExceeded tells whether the controller has given the rollout up.
func deadlineExceeded(object *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(each any) bool {
		condition, _ := each.(map[string]any)
		return condition["type"] == "Progressing" && condition["reason"] == "ProgressDeadlineExceeded"
	})
}

func strategy(object *unstructured.Unstructured) string {
	kind, _, _ := unstructured.NestedString(object.Object, "spec", "updateStrategy", "type")
	return kind
}

func daemonSetStatus(object *unstructured.Unstructured, n integerReader, observed bool) (string, bool, error) {
	if strategy(object) != "RollingUpdate" {
		return "", true, errors.New("rollout status is only available for RollingUpdate strategy type")
	}
	if !observed {
		return "Waiting for daemon set spec update to be observed...\n", false, nil
	}
	wanted, updated, available := n.at("status", "desiredNumberScheduled"), n.at("status", "updatedNumberScheduled"),
		n.at("status", "numberAvailable")
	waiting := fmt.Sprintf("Waiting for daemon set %q rollout to finish: ", object.GetName())
	switch {
	case updated < wanted:
		return waiting + fmt.Sprintf("%d out of %d new pods have been updated...\n", updated, wanted), false, nil
	case available < wanted:
		return waiting + fmt.Sprintf("%d of %d updated pods are available...\n", available, wanted), false, nil
	}
	return fmt.Sprintf("daemon set %q successfully rolled out\n", object.GetName()), true, nil
}

func statefulSetStatus(object *unstructured.Unstructured, n integerReader, observed bool) (string, bool, error) {
	if strategy(object) != "RollingUpdate" {
		return "", true, errors.New("rollout status is only available for RollingUpdate strategy type")
	}
	if n.at("status", "observedGeneration") == 0 || !observed {
		return "Waiting for statefulset spec update to be observed...\n", false, nil
	}
	wanted, ready, updated := n.or(1, "spec", "replicas"), n.at("status", "readyReplicas"), n.at("status", "updatedReplicas")
	partition := n.at("spec", "updateStrategy", "rollingUpdate", "partition")
	// Servers give each a partition, 0 where none is asked for.
	_, partitioned, err := unstructured.NestedMap(object.Object, "spec", "updateStrategy", "rollingUpdate")
	if err != nil {
		return "", false, fmt.Errorf("decode stateful set %s: %w", object.GetName(), err)
	}
	status, _, err := unstructured.NestedMap(object.Object, "status")
	if err != nil {
		return "", false, fmt.Errorf("decode stateful set %s: %w", object.GetName(), err)
	}
	switch {
	case ready < wanted:
		return fmt.Sprintf("Waiting for %d pods to be ready...\n", wanted-ready), false, nil
	case partitioned && updated < wanted-partition:
		return fmt.Sprintf("Waiting for partitioned roll out to finish: %d out of %d new pods have been updated...\n", updated, wanted-partition),
			false, nil
	case partitioned:
		return fmt.Sprintf("partitioned roll out complete: %d new pods have been updated...\n", updated), true, nil
	case status["updateRevision"] != status["currentRevision"]:
		return fmt.Sprintf("waiting for statefulset rolling update to complete %d pods at revision %v...\n", updated, status["updateRevision"]),
			false, nil
	}
	return fmt.Sprintf("statefulset rolling update complete %d pods at revision %v...\n",
		n.at("status", "currentReplicas"), status["currentRevision"]), true, nil
}
