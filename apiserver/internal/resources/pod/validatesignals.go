package pod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

var (
	windowsSignals = []corev1.Signal{corev1.SIGKILL, corev1.SIGTERM}
	linuxSignals   = linuxSignalNames()
)

func linuxSignalNames() []corev1.Signal {
	signals := []corev1.Signal{
		corev1.SIGABRT, corev1.SIGALRM, corev1.SIGBUS, corev1.SIGCHLD, corev1.SIGCLD, corev1.SIGCONT, corev1.SIGFPE, corev1.SIGHUP,
		corev1.SIGILL, corev1.SIGINT, corev1.SIGIO, corev1.SIGIOT, corev1.SIGKILL, corev1.SIGPIPE, corev1.SIGPOLL, corev1.SIGPROF,
		corev1.SIGPWR, corev1.SIGQUIT, corev1.SIGSEGV, corev1.SIGSTKFLT, corev1.SIGSTOP, corev1.SIGSYS, corev1.SIGTERM, corev1.SIGTRAP,
		corev1.SIGTSTP, corev1.SIGTTIN, corev1.SIGTTOU, corev1.SIGURG, corev1.SIGUSR1, corev1.SIGUSR2, corev1.SIGVTALRM,
		corev1.SIGWINCH, corev1.SIGXCPU, corev1.SIGXFSZ, corev1.SIGRTMIN, corev1.SIGRTMAX,
	}
	for n := 1; n <= 15; n++ {
		signals = append(signals, corev1.Signal(fmt.Sprintf("%s+%d", corev1.SIGRTMIN, n)))
	}
	for n := 1; n <= 14; n++ {
		signals = append(signals, corev1.Signal(fmt.Sprintf("%s-%d", corev1.SIGRTMAX, n)))
	}
	return signals
}

// validateStopSignal validates the signal that stops a container: one that its operating system has
// (KEP-4960).
func validateStopSignal(signal corev1.Signal, os *corev1.PodOS, at *field.Path) field.ErrorList {
	switch {
	case os == nil:
		return field.ErrorList{field.Forbidden(at, "may not be set for containers with empty `spec.os.name`")}
	case os.Name == corev1.Windows:
		return check.Supported(signal, at, windowsSignals...)
	case os.Name == corev1.Linux:
		return check.Supported(signal, at, linuxSignals...)
	}
	return nil
}
