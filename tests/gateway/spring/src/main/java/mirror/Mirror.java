package mirror;

import com.fasterxml.jackson.databind.ObjectMapper;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Collections;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.web.context.WebServerInitializedEvent;
import org.springframework.context.event.EventListener;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.PutMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

/** Writes down each request as Tomcat and Spring have parsed it; see mirrors/mirror_wsgi.py. */
@SpringBootApplication
@RestController
public class Mirror {
  private static final Path LOG = Path.of(System.getenv("MIRROR_LOG"));
  private static final Set<String> EARLY = Set.of("GET", "HEAD", "OPTIONS");
  private final ObjectMapper json = new ObjectMapper();

  public static void main(String[] words) {
    SpringApplication.run(Mirror.class, words);
  }

  @EventListener
  public void listens(WebServerInitializedEvent event) {
    System.out.println(event.getWebServer().getPort());
  }

  @PostMapping({"/payments", "/payments/{id}"})
  public Map<String, String> pay(HttpServletRequest request, HttpServletResponse response)
      throws IOException, GeneralSecurityException {
    return note("pay", request, response);
  }

  @PutMapping("/items/{item}")
  public Map<String, String> put(HttpServletRequest request, HttpServletResponse response)
      throws IOException, GeneralSecurityException {
    return note("put", request, response);
  }

  @RequestMapping("/**")
  public Map<String, String> other(HttpServletRequest request, HttpServletResponse response)
      throws IOException, GeneralSecurityException {
    return note("other", request, response);
  }

  private Map<String, String> note(String handler, HttpServletRequest request,
      HttpServletResponse response) throws IOException, GeneralSecurityException {
    Map<String, Object> record = new HashMap<>();
    record.put("id", request.getHeader("X-Proof"));
    record.put("method", request.getMethod());
    record.put("path", request.getServletPath());
    record.put("handler", handler);
    record.put("body", null);
    if (!EARLY.contains(request.getMethod())) {
      byte[] body = request.getInputStream().readAllBytes();
      byte[] digest = MessageDigest.getInstance("SHA-1").digest(body);
      record.put("body", HexFormat.of().formatHex(digest));
    }
    Map<String, String> fields = new TreeMap<>();
    for (String name : Collections.list(request.getHeaderNames())) {
      fields.put(name.toLowerCase(), String.join(",", Collections.list(request.getHeaders(name))));
    }
    record.put("fields", fields);
    synchronized (this) {
      Files.writeString(LOG, json.writeValueAsString(record) + "\n", StandardOpenOption.CREATE,
          StandardOpenOption.APPEND);
    }
    String id = request.getHeader("X-Proof");
    response.setHeader("X-Mirror", id == null ? "-" : id);
    return Map.of("handler", handler);
  }
}
