package io.semel.tests;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;

/** A client of an application. */
final class Http {
  private static final HttpClient CLIENT = HttpClient.newHttpClient();
  private final String base;

  Http(String port) {
    base = "http://127.0.0.1:" + port;
  }

  CompletableFuture<HttpResponse<String>> send(String path, String body, String... headers) {
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(base + path))
        .timeout(Duration.ofSeconds(30)).header("Content-Type", "application/json")
        .POST(HttpRequest.BodyPublishers.ofString(body));
    if (headers.length > 0) request.headers(headers);
    return CLIENT.sendAsync(request.build(), HttpResponse.BodyHandlers.ofString());
  }

  HttpResponse<String> post(String path, String body, String... headers) throws Exception {
    return send(path, body, headers).get();
  }

  static String header(HttpResponse<?> response, String name) {
    return response.headers().firstValue(name).orElse("");
  }
}
