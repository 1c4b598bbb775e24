package config

import (
	"net/http"
	"time"
)

// Sources are where pods come from besides the API server.
type Sources struct {
	StaticPodPath, StaticPodURL            string
	StaticPodURLHeader                     http.Header
	FileCheckFrequency, HTTPCheckFrequency time.Duration
}

func newSources() Sources {
	return Sources{FileCheckFrequency: 20 * time.Second, HTTPCheckFrequency: 20 * time.Second}
}
